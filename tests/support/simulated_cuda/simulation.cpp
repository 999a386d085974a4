#include "tests/support/simulated_cuda/simulation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "backends/cuda/runtime/out_of_memory.h"
#include "core/error.h"

namespace plexaura::cuda::simulation {

namespace {

constexpr std::chrono::microseconds between_looks{100};  // at what other processes do

bool has_reached(const HoldByFlag& hold) {
  return std::atomic_ref(*const_cast<runtime::Flag*>(hold.flag)).load() >= hold.value;
}

// Forked nodes as late as what waits for them allows.
std::vector<GraphNode> in_late_order(std::vector<GraphNode> nodes) {
  std::vector<GraphNode> forked;
  std::vector<GraphNode> order;
  std::size_t next = 0;
  const auto run_forked = [&](std::size_t count) {
    for (; next < count; ++next) order.push_back(std::move(forked[next]));
  };
  for (GraphNode& node : nodes) {
    if (node.forked) {
      forked.push_back(std::move(node));
    } else {
      run_forked(node.waits_for);
      order.push_back(std::move(node));
    }
  }
  run_forked(forked.size());
  return order;
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
          .deadly_work = number_in_environment("PLEXAURA_SIMULATED_CUDA_DIES_IN", 0)};
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

void Device::begin_launch(const std::string& name) {
  throw_failure();
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

void Device::enqueue(runtime::Stream* stream, std::function<void()> run) {
  if (capturing() != nullptr) return capture(stream, {.run = std::move(run), .event = {}});
  stream->tasks.emplace_back(Work{std::move(run)});
  ++stream->entered;
}

void Device::record(const EventHandle& event, runtime::Stream* stream) {
  if (Capturing* const into = capturing()) {
    const bool forked = into->forked.contains(stream);
    if (stream == into->origin || forked)
      into->marks.push_back({event, forked, into->forked_nodes});
    else
      forbid_in_capture("cudaEventRecord on a stream that is not captured");
    return;
  }
  stream->tasks.emplace_back(Mark{event, ++event->recorded});
  event->stream = stream;
  event->position = ++stream->entered;
}

void Device::record_in_graph(const EventHandle& event, runtime::Stream* stream) {
  capture(stream, {.run = {}, .event = event});
}

void Device::hold(runtime::Stream* stream, const EventHandle& event) {
  if (Capturing* const into = capturing()) {
    const auto& marks = into->marks;
    const auto mark =
        std::find_if(marks.rbegin(), marks.rend(), [&](const auto& of) { return of.event == event; });
    if (mark == marks.rend()) forbid_in_capture("cudaStreamWaitEvent for an event from outside the capture");
    if (stream != into->origin)
      into->forked.insert(stream);
    else if (mark->forked)
      into->joined_nodes = std::max(into->joined_nodes, mark->forked_nodes);
    return;
  }
  if (event->stream == nullptr) return;  // never recorded: CUDA does not wait
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
  enqueue(stream, [=, this] {
    if (std::atomic_ref(*flag).exchange(value) > value)
      throw InternalError("CUDA: a stream has put a flag back, for which another stream may wait");
    std::erase_if(raises_, [=](const Raise& raise) { return raise.flag == flag && raise.value == value; });
  });
  raises_.push_back({flag, value, stream, stream->entered});
  changed_.notify_all();
}

void Device::launch(runtime::Graph& graph, runtime::Stream* stream) {
  forbid_in_capture("cudaGraphLaunch");
  std::vector<std::pair<std::size_t, std::uint64_t>> uses;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (const EventHandle& event = graph.nodes[i].event) {
      uses.emplace_back(i, ++event->recorded);
      event->stream = stream;
      event->position = stream->entered + 1;
    }
  enqueue(stream, [this, nodes = graph.nodes, uses] {
    auto use = uses.begin();
    for (const GraphNode& node : nodes)
      if (node.event)
        node.event->passed = (use++)->second;
      else
        run(node.run);
  });
}

void Device::synchronize(const EventHandle& event, std::unique_lock<std::mutex>& lock) {
  forbid_in_capture("cudaEventSynchronize");
  if (event->stream != nullptr && event->passed < event->recorded)
    run_up_to(*event->stream, event->position, lock);
  throw_failure();
}

void Device::drop(runtime::Stream* stream) {
  stream->done += stream->tasks.size();
  stream->tasks.clear();
  changed_.notify_all();
}

void Device::begin_capture(runtime::Stream* stream) {
  forbid_in_capture("cudaStreamBeginCapture");
  capturing_[std::this_thread::get_id()].origin = stream;
}

std::vector<GraphNode> Device::end_capture(runtime::Stream*) {
  const Capturing captured = std::move(*capturing());
  drop_capture();
  if (captured.joined_nodes < captured.forked_nodes)
    throw InternalError(
        "CUDA: cudaErrorStreamCaptureUnjoined: a stream was not joined to the one that is captured");
  return in_late_order(captured.nodes);
}

void Device::capture(runtime::Stream* stream, GraphNode node) {
  Capturing* const into = capturing();
  if (into == nullptr) throw InternalError("CUDA: an external event was recorded where nothing is captured");
  node.forked = into->forked.contains(stream);
  if (stream != into->origin && !node.forked) forbid_in_capture("work on a stream that is not captured");
  if (node.forked)
    ++into->forked_nodes;
  else
    node.waits_for = into->joined_nodes;
  into->nodes.push_back(std::move(node));
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

// The first that lets a stream go on which the flag holds.
const Raise* Device::raise_to(const HoldByFlag& hold) const {
  const auto found = std::ranges::find_if(
      raises_, [&](const Raise& raise) { return raise.flag == hold.flag && raise.value >= hold.value; });
  return found == raises_.end() ? nullptr : &*found;
}

// False where another thread may have gone on meanwhile.
bool Device::start(runtime::Stream& stream, std::unique_lock<std::mutex>& lock) {
  const std::uint64_t number = stream.done;
  const Task task = stream.tasks.front();
  if (const auto* work = std::get_if<Work>(&task)) {
    run(work->run);
  } else if (const auto* mark = std::get_if<Mark>(&task)) {
    mark->event->passed = std::max(mark->event->passed, mark->use);
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
    work();
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
}

void Device::throw_failure() const {
  if (!failure_.empty()) throw DeviceError(failure_);
}

}  // namespace plexaura::cuda::simulation
