#include "backends/cuda/engine/faster_graph.h"

#include <algorithm>
#include <limits>

namespace plexaura::cuda {

namespace {

// Smallest share of the time that a choice must save; a smaller gain may be chance.
constexpr double least_gain = 1.0 / 100;

}  // namespace

void FasterGraph::launch(runtime::Stream* stream) {
  if (next_ == timings_.size()) {
    choose();
    return runtime::launch(graphs_[chosen_].get(), stream);
  }
  const Timing& timing = timings_[next_];
  runtime::record(timing.begin.get(), stream);
  runtime::launch(graphs_[next_ < rounds ? 1 : 0].get(), stream);
  runtime::record(timing.end.get(), stream);
  ++next_;
}

void FasterGraph::choose() {
  if (timings_.empty() || !runtime::passed(timings_.back().end.get())) return;
  chosen_ = least_seconds(0) < (1 - least_gain) * least_seconds(rounds) ? 1 : 0;
  timings_.clear();
  next_ = 0;
}

double FasterGraph::least_seconds(std::size_t round) const {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = round + 1; i < round + rounds; ++i)
    least = std::min(least, runtime::seconds_between(timings_[i].begin.get(), timings_[i].end.get()));
  return least;
}

}  // namespace plexaura::cuda
