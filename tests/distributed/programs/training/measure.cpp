#include "tests/distributed/programs/training/measure.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <vector>

#include "backends/registry.h"
#include "distributed/strategies/strategies.h"
#include "tests/distributed/programs/training/small_run.h"

namespace plexaura::testing {
namespace {

constexpr std::int64_t usual_bucket_bytes = 25 << 20;  // the default of the programs
constexpr int repeats = 15;

std::vector<ParameterSpec> one_weight(std::int64_t count) {
  return {{"weight", {DType::float32, Shape{count}}, ParameterRole::trainable, Initialiser::zeros()}};
}

struct Times {
  double median = 0;  // milliseconds
  double shortest = 0;
};

// Times the exchange of all buckets of `count` float32 elements.
Times measure(Communicator& ranks, Backend& backend, const std::string& name, std::int64_t count) {
  const std::unique_ptr<Strategy> strategy = make_strategy({.name = name}, ranks);
  if (!strategy) return {};
  GradientSum& gradients = *strategy->parts().gradients;
  ParameterStore store(one_weight(count));
  Placement placement;
  placement.append("weight", store.specs()[0].type, ParameterRole::trainable, Layout::row_major(1));
  store.place(placement, backend, [&](std::size_t bytes) { return gradients.gradient_memory(bytes); });
  WeightsImmigration border(store, usual_bucket_bytes);
  strategy->begin(border);
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    for (std::size_t b = 0; b < border.buckets().size(); ++b) {
      border.stage_out(b);
      gradients.gradients_ready(b, border.staged(b));
    }
    ranks.barrier("the start of a measurement");
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t b = 0; b < border.buckets().size(); ++b) gradients.before_update(b);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::sort(times);
  return {times[times.size() / 2], times.front()};
}

}  // namespace

void measure_exchanges(Communicator& ranks) {
  const std::unique_ptr<Backend> backend = open_backend("cpu");
  for (const std::int64_t megabytes : {1, 4, 25, 100}) {
    for (const std::string& name : summing_strategies) {
      const Times times = measure(ranks, *backend, name, megabytes * 250'000);
      if (ranks.rank() == 0)
        fmt::print("{:4} MB {:17} median {:8.3f} ms, shortest {:8.3f} ms\n", megabytes, name, times.median,
                   times.shortest);
    }
  }
}

}  // namespace plexaura::testing
