#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "backends/cuda/engine/device.h"

namespace plexaura::cuda {

// The events before and after one launch of a graph. They give its time once both have passed.
struct Timing {
  EventHandle begin{runtime::make_timed_event()};
  EventHandle end{runtime::make_timed_event()};
};

// One graph, or two with the same results. The first `rounds` launches run the second graph, and the next
// `rounds` the first one. After these the second graph runs if it was faster, and otherwise the first one.
// The host never waits for the times.
class FasterGraph {
 public:
  explicit FasterGraph(GraphHandle only) : graphs_{std::move(only), nullptr} {}
  FasterGraph(GraphHandle first, GraphHandle second)
      : graphs_{std::move(first), std::move(second)}, timings_(2 * rounds) {}

  void launch(runtime::Stream* stream);

  // The number of launches of each graph that are timed. The first launch does not count, since it may load
  // the graph.
  static constexpr std::size_t rounds = 4;

 private:
  void choose();
  double least_seconds(std::size_t round) const;

  std::array<GraphHandle, 2> graphs_;
  // Times of the launches of the second graph, followed by those of the first one; empty once the choice is
  // made.
  std::vector<Timing> timings_;
  std::size_t next_ = 0;  // index of the next element of timings_
  std::size_t chosen_ = 0;
};

}  // namespace plexaura::cuda
