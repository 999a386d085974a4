#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "backends/cuda/engine/device.h"

namespace plexaura::cuda {

// How long a graph took, once both events are passed.
struct Timing {
  EventHandle begin{runtime::make_timed_event()};
  EventHandle end{runtime::make_timed_event()};
};

// One graph, or two of the same results: its first launches take the second one, and those behind them the first one. From
// then on the second one is taken if it was faster. The host waits for none of them.
class FasterGraph {
 public:
  explicit FasterGraph(GraphHandle only) : graphs_{std::move(only), nullptr} {}
  FasterGraph(GraphHandle first, GraphHandle second)
      : graphs_{std::move(first), std::move(second)}, timings_(2 * rounds) {}

  void launch(runtime::Stream* stream);

  static constexpr std::size_t rounds = 4;  // of each graph; the first one, which may load it, does not count

 private:
  void choose();
  double least_seconds(std::size_t round) const;

  std::array<GraphHandle, 2> graphs_;
  std::vector<Timing>
      timings_;           // of the second graph and then of the first; none where there is nothing to choose
  std::size_t next_ = 0;  // of these
  std::size_t chosen_ = 0;
};

}  // namespace plexaura::cuda
