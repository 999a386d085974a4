#include "tests/support/far_device/streams.h"

#include <algorithm>
#include <cstring>
#include <limits>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "core/base/error.h"

namespace plexaura::far_device {

namespace {

// Sets one thread, so that host kernels compute the bits of one thread.
void prepare_thread() {
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
}

}  // namespace

void Copy::run() const {
  if (bytes > 0) std::memmove(dst, src, bytes);
}

void TaskQueue::push(Task task) {
  if (count_ == ring_.size()) {
    std::ranges::rotate(ring_, ring_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    ring_.resize(2 * count_);
  }
  ring_[(first_ + count_) % ring_.size()] = std::move(task);
  ++count_;
}

Task TaskQueue::pop() {
  Task task = std::move(ring_[first_]);
  ring_[first_] = Task{};
  first_ = (first_ + 1) % ring_.size();
  --count_;
  return task;
}

Streams::Streams(bool lazy) : lazy_(lazy) {
  for (const Lane lane : {Lane::compute, Lane::copy, Lane::recorded_copy})
    threads_[static_cast<std::size_t>(lane)] = std::thread([this, lane] { work(lane); });
}

Streams::~Streams() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Streams::enqueue(Lane lane, Task task) {
  const Lock lock(mutex_);
  push(lane, std::move(task));
}

std::uint64_t Streams::push(Lane lane, Task task) {
  Queue& to = queue(lane);
  to.tasks.push(std::move(task));
  ++to.entered;
  if (!lazy_) {
    to.released = to.entered;
    changed_.notify_all();
  }
  return to.entered;
}

void Streams::record(const std::shared_ptr<EventState>& event, Lane lane) {
  const Lock lock(mutex_);
  const std::uint64_t use = event->last.use + 1;
  event->last = {use, lane, push(lane, Mark{event, use})};
  changed_.notify_all();  // threads that already wait learn what they wait for
}

void Streams::hold(const std::shared_ptr<EventState>& event, Lane lane) {
  const Lock lock(mutex_);
  push(lane, Hold{event, event->last});
}

void Streams::signal(EventState& event) {
  const Lock lock(mutex_);
  event.passed_use = event.last.use;
  changed_.notify_all();
}

void Streams::reset(EventState& event) {
  const Lock lock(mutex_);
  event.last = {event.last.use + 1, std::nullopt, 0};
}

bool Streams::passed(const EventState& event) const {
  const Lock lock(mutex_);
  return event.passed_use >= event.last.use;
}

void Streams::wait(EventState& event) {
  Lock lock(mutex_);
  await(event, Ticket(event.last), lock);
  throw_failure();
}

void Streams::throw_failure() {
  if (!failure_) return;
  const std::string text = std::move(*failure_);
  failure_.reset();
  throw DeviceError(text);
}

void Streams::release_up_to(const Ticket& ticket) {
  if (!ticket.lane) return;
  Queue& to = queue(*ticket.lane);
  if (to.released >= ticket.position) return;
  to.released = ticket.position;
  changed_.notify_all();
}

void Streams::await(const EventState& event, const Ticket& ticket, Lock& lock) {
  release_up_to(ticket);
  changed_.wait(lock, [&] {
    if (stopping_ || event.passed_use >= ticket.use) return true;
    if (!ticket.lane)
      // The event was not recorded before, and may have been recorded meanwhile.
      release_up_to(event.last);
    return false;
  });
}

void Streams::work(Lane lane) {
  prepare_thread();
  Queue& from = queue(lane);
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || from.started < from.released; });
    if (stopping_) return;
    Task task = from.tasks.pop();
    ++from.started;
    execute(task, lock);
  }
}

void Streams::execute(Task& task, Lock& lock) {
  if (const Mark* mark = std::get_if<Mark>(&task)) {
    mark->event->passed_use = std::max(mark->event->passed_use, mark->use);
    changed_.notify_all();
  } else if (const Hold* hold = std::get_if<Hold>(&task)) {
    await(*hold->event, hold->ticket, lock);
  } else {
    run_unlocked(task, lock);
  }
}

void Streams::run_unlocked(Task& task, Lock& lock) {
  lock.unlock();
  std::optional<std::string> failure;
  try {
    if (const Copy* copy = std::get_if<Copy>(&task))
      copy->run();
    else
      std::get<std::shared_ptr<Job>>(task)->run();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  task = Task{};
  lock.lock();
  if (failure && !failure_) failure_ = std::move(failure);
}

}  // namespace plexaura::far_device
