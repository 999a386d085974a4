#include "distributed/exchange/exchange_thread.h"

#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

// Unlocks a lock while the object lives, and locks it again.
class Unlocked {
 public:
  explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace

ExchangeThread::ExchangeThread(std::function<void(std::size_t)> exchange, Order order)
    : exchange_(std::move(exchange)), order_(std::move(order)), thread_([this] { run(); }) {}

ExchangeThread::~ExchangeThread() {
  stop();
  thread_.join();
}

void ExchangeThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
}

void ExchangeThread::begin(std::size_t bucket) {
  {
    const std::lock_guard lock(mutex_);
    if (bucket == 0 && !has_work()) {
      is_done_.clear();
      place_ = 0;
    }
    if (bucket != is_done_.size()) throw InternalError("buckets are handed over out of order");
    is_done_.push_back(false);
  }
  changed_.notify_all();
}

void ExchangeThread::await(std::size_t bucket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return (bucket < is_done_.size() && is_done_[bucket]) || failure_; });
  if (failure_) std::rethrow_exception(failure_);
}

bool ExchangeThread::is_idle() {
  const std::lock_guard lock(mutex_);
  return !has_work();
}

void ExchangeThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || has_work(); });
    if (ends_) return;
    try {
      exchange_next(lock);
    } catch (...) {
      failure_ = std::current_exception();
    }
    changed_.notify_all();
  }
}

void ExchangeThread::exchange_next(std::unique_lock<std::mutex>& lock) {
  const std::size_t bucket = [&, place = place_, begun = is_done_.size()] {
    const Unlocked unlocked(lock);
    return order_(place, begun);
  }();
  changed_.wait(lock, [&] { return ends_ || bucket < is_done_.size(); });
  if (ends_) return;
  {
    const Unlocked unlocked(lock);
    exchange_(bucket);
  }
  is_done_[bucket] = true;
  ++place_;
}

void give_up(std::unique_ptr<ExchangeThread>& thread, Collective& ranks) noexcept {
  if (!thread) return;
  thread->stop();
  const bool is_idle = thread->is_idle();
  if (!is_idle) ranks.interrupt_waits(true);
  thread.reset();
  if (!is_idle) ranks.interrupt_waits(false);
}

}  // namespace plexaura
