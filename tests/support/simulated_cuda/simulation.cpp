#include "tests/support/simulated_cuda/simulation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "backends/cuda/runtime/out_of_memory.h"
#include "core/base/error.h"

namespace plexaura::cuda::simulation {

namespace {

constexpr std::chrono::microseconds between_looks{100};  // interval of checks for what other processes do

thread_local bool is_used_in_this_thread = false;

bool has_reached(const HoldByFlag& hold) {
  return std::atomic_ref(*const_cast<runtime::Flag*>(hold.flag)).load() >= hold.value;
}

std::uint64_t number_in_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

Faults Faults::of_environment() {
  return {.memory = number_in_environment("PLEXAURA_SIMULATED_CUDA_MEMORY",
                                          std::numeric_limits<std::size_t>::max()),
          .refused_launch = number_in_environment("PLEXAURA_SIMULATED_CUDA_REFUSES", 0),
          .deadly_work = number_in_environment("PLEXAURA_SIMULATED_CUDA_DIES_IN", 0),
          .forgotten_hold = number_in_environment("PLEXAURA_SIMULATED_CUDA_FORGETS", 0),
          .patience = number_in_environment("PLEXAURA_SIMULATED_CUDA_PATIENCE", Faults().patience)};
}

Device& Device::get() {
  static Device device;
  return device;
}

void Device::set_faults(const Faults& faults) {
  if (faults == faults_) return;
  faults_ = faults;
  launches_ = 0;
  works_run_ = 0;
  holds_ = 0;
}

std::byte* Device::allocate(std::size_t bytes) {
  const std::size_t left = faults_.memory - std::min(faults_.memory, bytes_used_);
  if (bytes > left)
    throw OutOfMemoryError<DeviceError>(runtime::out_of_memory_text(bytes, left, faults_.memory));
  std::byte* const address = memory_.allocate_device(bytes);
  pieces_[address] = bytes;
  bytes_used_ += bytes;
  return address;
}

void Device::free(std::byte* address) {
  memory_.free_device(address);
  bytes_used_ -= pieces_.at(address);
  pieces_.erase(address);
  ++times_freed;
}

void Device::use_in_this_thread() { is_used_in_this_thread = true; }

void Device::begin_launch(const std::string& name) {
  throw_failure();
  if (!is_used_in_this_thread)
    throw DeviceError(fmt::format("{}: CUDA: invalid resource handle: the thread has another device", name));
  if (++launches_ == faults_.refused_launch)
    throw DeviceError(fmt::format("{}: CUDA: too many resources requested for launch", name));
}

std::vector<std::int64_t> Device::order_of_blocks(std::int64_t blocks) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(blocks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random_);
  return order;
}

Capturing* Device::capturing() {
  const auto found = capturing_.find(std::this_thread::get_id());
  return found == capturing_.end() ? nullptr : &found->second;
}

void Device::enqueue(runtime::Stream* stream, const std::string& name, std::function<void()> run) {
  if (capturing() != nullptr) return capture(stream, {.name = name, .run = std::move(run)});
  stream->tasks.emplace_back(Work{std::move(run)});
  ++stream->entered;
}

void Device::note_use(const std::byte* place, std::size_t bytes, bool writes) {
  if (used_ != nullptr) (writes ? used_->written : used_->read).add(place, bytes);
}

void Device::record(const EventHandle& event, runtime::Stream* stream) {
  if (Capturing* const into = capturing()) {
    if (!into->takes_part(stream)) forbid_in_capture("cudaEventRecord on a stream that is not captured");
    into->mark(event, stream);
    return;
  }
  stream->tasks.emplace_back(Mark{event, ++event->recorded});
  event->stream = stream;
  event->position = ++stream->entered;
}

void Device::record_in_graph(const EventHandle& event, runtime::Stream* stream) {
  capture(stream, {.name = "an event", .event = event});
}

void Device::hold(runtime::Stream* stream, const EventHandle& event) {
  if (Capturing* const into = capturing()) {
    if (++holds_ == faults_.forgotten_hold) return;
    if (!into->hold(stream, event))
      forbid_in_capture("cudaStreamWaitEvent for an event from outside the capture");
    return;
  }
  if (event->stream == nullptr) return;  // CUDA does not wait for an event that was never recorded
  stream->tasks.emplace_back(HoldByEvent{event, event->recorded, event->stream, event->position});
  ++stream->entered;
}

void Device::hold(runtime::Stream* stream, HoldByFlag hold) {
  forbid_in_capture("cuStreamWaitValue32");
  stream->tasks.emplace_back(hold);
  ++stream->entered;
}

void Device::hold(runtime::Stream* stream, HoldByOthers hold) {
  forbid_in_capture("ncclAllReduce");
  stream->tasks.emplace_back(std::move(hold));
  ++stream->entered;
}

void Device::raise(runtime::Stream* stream, runtime::Flag* flag, runtime::Flag value) {
  enqueue(stream, "a flag", [=, this] {
    if (std::atomic_ref(*flag).exchange(value) > value)
      throw InternalError("CUDA: a stream has put a flag back, for which another stream may wait");
    std::erase_if(raises_, [=](const Raise& raise) { return raise.flag == flag && raise.value == value; });
  });
  raises_.push_back({flag, value, stream, stream->entered});
  changed_.notify_all();
}

void Device::launch(runtime::Graph& graph, runtime::Stream* stream) {
  forbid_in_capture("cudaGraphLaunch");
  const CapturedGraph& captured = *graph.captured;
  std::vector<std::uint64_t> uses(captured.nodes().size());
  for (const std::size_t node : captured.order())
    if (const EventHandle& event = captured.nodes()[node].event) {
      uses[node] = ++event->recorded;
      event->stream = stream;
      event->position = stream->entered + 1;
    }
  const bool checks_races = captured.forks() && !std::exchange(graph.checked, true);
  enqueue(stream, "a graph",
          [this, of = graph.captured, uses, checks_races] { run(*of, uses, checks_races); });
}

void Device::run(const CapturedGraph& graph, const std::vector<std::uint64_t>& uses, bool checks_races) {
  const double begin = time_;
  std::vector<UsedBytes> used(checks_races ? uses.size() : 0);
  for (const std::size_t index : graph.order()) {
    const GraphNode& node = graph.nodes()[index];
    if (checks_races) used_ = &used[index];
    if (node.event) {
      node.event->passed = uses[index];
      node.event->time = begin + graph.end_of(index);
    } else {
      run(node.run);
    }
    used_ = nullptr;
  }
  time_ = begin + graph.length();
  if (checks_races && failure_.empty()) graph.check_races(std::move(used));
}

void Device::synchronize(const EventHandle& event, std::unique_lock<std::mutex>& lock) {
  forbid_in_capture("cudaEventSynchronize");
  if (event->stream != nullptr && event->passed < event->recorded)
    run_up_to(*event->stream, event->position, lock);
  throw_failure();
}

bool Device::waits_for_host(const runtime::Stream& stream) const {
  return std::ranges::any_of(stream.tasks, [this](const Task& task) {
    const auto* flag = std::get_if<HoldByFlag>(&task);
    return flag != nullptr && !has_reached(*flag) && raise_to(*flag) == nullptr;
  });
}

void Device::wait_for_flags(const char* call, std::unique_lock<std::mutex>& lock) {
  const auto are_free = [this] {
    return !failure_.empty() ||
           std::ranges::none_of(streams_, [this](const auto* stream) { return waits_for_host(*stream); });
  };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(faults_.patience), are_free))
    failure_ = fmt::format("CUDA: {} waits for a stream that waits for a flag, which nobody raises", call);
}

void Device::drop(runtime::Stream* stream) {
  std::erase(streams_, stream);
  stream->done += stream->tasks.size();
  stream->tasks.clear();
  changed_.notify_all();
}

void Device::begin_capture(runtime::Stream* stream) {
  forbid_in_capture("cudaStreamBeginCapture");
  capturing_.emplace(std::this_thread::get_id(), stream);
}

CapturedGraph Device::end_capture() {
  Capturing captured = std::move(*capturing());
  drop_capture();
  return captured.end();
}

void Device::capture(runtime::Stream* stream, GraphNode node) {
  Capturing* const into = capturing();
  if (into == nullptr) throw InternalError("CUDA: an external event was recorded where nothing is captured");
  if (!into->takes_part(stream)) forbid_in_capture("work on a stream that is not captured");
  into->add(stream, std::move(node));
}

void Device::forbid_in_capture(const char* call) {
  if (capturing() != nullptr)
    throw InternalError(
        fmt::format("CUDA: cudaErrorStreamCaptureUnsupported: {} while a stream is captured", call));
}

void Device::run_up_to(runtime::Stream& stream, std::uint64_t position, std::unique_lock<std::mutex>& lock) {
  while (stream.done < position) {
    const std::uint64_t number = stream.done;
    if (!start(stream, lock) || stream.done != number) continue;
    stream.tasks.pop_front();
    ++stream.done;
    changed_.notify_all();
  }
}

// Returns the first raise of a flag that lets the held stream continue.
const Raise* Device::raise_to(const HoldByFlag& hold) const {
  const auto found = std::ranges::find_if(
      raises_, [&](const Raise& raise) { return raise.flag == hold.flag && raise.value >= hold.value; });
  return found == raises_.end() ? nullptr : &*found;
}

// Runs the first task of the stream. Returns false if it has waited, so that the caller must look at the stream
// again.
bool Device::start(runtime::Stream& stream, std::unique_lock<std::mutex>& lock) {
  const std::uint64_t number = stream.done;
  const Task task = stream.tasks.front();
  if (const auto* work = std::get_if<Work>(&task)) {
    run(work->run);
  } else if (const auto* mark = std::get_if<Mark>(&task)) {
    mark->event->passed = std::max(mark->event->passed, mark->use);
    mark->event->time = time_;
  } else if (const auto* hold = std::get_if<HoldByEvent>(&task)) {
    if (hold->event->passed < hold->use) run_up_to(*hold->stream, hold->position, lock);
  } else if (const auto* others = std::get_if<HoldByOthers>(&task)) {
    if (!failure_.empty() || others->have_come()) return true;
    changed_.wait_for(lock, between_looks);
    return false;
  } else if (const auto& flag = std::get<HoldByFlag>(task); failure_.empty() && !has_reached(flag)) {
    if (const Raise* raise = raise_to(flag))
      run_up_to(*raise->stream, raise->position, lock);
    else
      changed_.wait(lock, [&] {
        return stream.done != number || !failure_.empty() || has_reached(flag) || raise_to(flag);
      });
    return false;
  }
  return true;
}

void Device::run(const std::function<void()>& work) {
  if (!failure_.empty()) return;
  try {
    if (++works_run_ == faults_.deadly_work)
      throw DeviceError("CUDA: an illegal memory access was encountered");
    ++time_;
    work();
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

void Device::throw_failure() const {
  if (!failure_.empty()) throw DeviceError(failure_);
}

}  // namespace plexaura::cuda::simulation
