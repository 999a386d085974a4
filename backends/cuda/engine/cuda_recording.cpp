#include "backends/cuda/engine/cuda_recording.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/engine/cuda_event.h"
#include "backends/cuda/engine/faster_graph.h"

namespace plexaura::cuda {

namespace {

std::vector<Turn> place_on_one_branch(const std::vector<Part>& parts) {
  return std::vector<Turn>(parts.size());
}

std::vector<Turn> place(const std::vector<Part>& parts) {
  std::vector<Work> works;
  for (const Part& part : parts) works.push_back(part.work);
  return place_on_branches(works);
}

// Lets the calling thread enqueue kernels on a branch while the object lives.
class OnBranch {
 public:
  OnBranch(Device& device, std::size_t branch) : device_(device) { device.go_to_branch(branch); }
  ~OnBranch() { device_.go_to_branch(0); }
  OnBranch(const OnBranch&) = delete;
  OnBranch& operator=(const OnBranch&) = delete;

 private:
  Device& device_;
};

// Makes an event for each part for which a part of the other branch waits.
std::vector<EventHandle> ends_of(const std::vector<Turn>& turns) {
  std::vector<EventHandle> ends(turns.size());
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (turns[i].awaited) ends[i].reset(runtime::make_event());
  return ends;
}

void enqueue(Device& device, const std::vector<Part>& parts, const std::vector<Turn>& turns,
             const std::vector<EventHandle>& ends) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const OnBranch on_branch(device, turns[i].branch);
    runtime::Stream* const stream = device.branch().stream;
    if (turns[i].behind) runtime::hold(stream, ends[*turns[i].behind].get());
    parts[i].enqueue();
    if (turns[i].awaited) runtime::record(ends[i].get(), stream);
  }
}

GraphHandle graph_of_parts(Device& device, const std::vector<Part>& parts, const std::vector<Turn>& turns) {
  const std::vector<EventHandle> ends = ends_of(turns);
  runtime::Stream* const compute = device.compute.get();
  runtime::begin_capture(compute);
  try {
    enqueue(device, parts, turns, ends);
  } catch (...) {
    runtime::drop_capture(compute);
    throw;
  }
  return GraphHandle(runtime::end_capture(compute));
}

class CudaRecording final : public Recording {
 public:
  CudaRecording(std::shared_ptr<Device> device, FasterGraph graph)
      : device_(std::move(device)),
        graph_(std::move(graph)),
        events_(device_->capture.take_events()),
        host_copies_(device_->capture.host_copies()) {}

  void replay() override {
    device_->capture.forbid("replaying");
    graph_.launch(device_->compute.get());
    device_->transfers.count_recorded_copies(host_copies_);
    for (const auto& event : events_) {
      const std::lock_guard lock(event->mutex);
      event->recorded_in(device_->compute.get());
    }
  }

 private:
  std::shared_ptr<Device> device_;
  FasterGraph graph_;
  std::vector<std::shared_ptr<EventState>> events_;
  std::uint64_t host_copies_;
};

FasterGraph faster_graph_of(Device& device, const std::vector<Part>& parts, bool branches) {
  GraphHandle one = graph_of_parts(device, parts, place_on_one_branch(parts));
  if (!branches) return FasterGraph(std::move(one));
  const std::vector<Turn> turns = place(parts);
  const bool forks = std::ranges::any_of(turns, [](const Turn& turn) { return turn.branch > 0; });
  if (!forks) return FasterGraph(std::move(one));
  return {std::move(one), graph_of_parts(device, parts, turns)};
}

}  // namespace

std::unique_ptr<Recording> make_recording(std::shared_ptr<Device> device, bool branches) {
  const std::vector<Part> parts = device->capture.take_parts();
  FasterGraph graph = faster_graph_of(*device, parts, branches);
  return std::make_unique<CudaRecording>(std::move(device), std::move(graph));
}

}  // namespace plexaura::cuda
