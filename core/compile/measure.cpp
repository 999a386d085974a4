#include "core/compile/measure.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/device/transfer.h"

namespace plexaura {

namespace {

constexpr double shortest_span = 1e-4;  // seconds between two looks at the clock
constexpr int most_repeats = 1000;
constexpr int most_rounds = 20;
constexpr double enough = 0.05;  // seconds of runs

std::unique_ptr<Memory> zeros(Backend& backend, std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(count);
  auto memory = backend.allocate(bytes, MemoryUse::device);
  const std::vector<std::byte> zero(bytes);
  copy_to_device(backend, memory->address(), zero.data(), bytes);
  return memory;
}

// A candidate's kernel with operands of its own.
class Trial {
 public:
  Trial(Backend& backend, const RegionQuery& query, const Candidate& candidate, bool accumulate)
      : backend_(backend), done_(backend.make_event()) {
    const Region& region = query.region;
    Binding binding;
    for (std::size_t i = 0; i < region.inputs.size(); ++i) {
      const bool read = candidate.reads.empty() || candidate.reads[i];
      binding.inputs.push_back(read ? hold(candidate.inputs[i].bytes(query.type(region.inputs[i])))
                                    : nullptr);
    }
    for (std::size_t i = 0; i < region.outputs.size(); ++i)
      binding.outputs.push_back(
          query.wanted[i] ? hold(candidate.outputs[i].bytes(query.type(region.outputs[i]))) : nullptr);
    const auto kernel = candidate.make(accumulate);
    if (kernel->workspace() > 0) binding.workspace = hold(static_cast<std::int64_t>(kernel->workspace()));
    binding.name = &name_;
    launch_ = kernel->bind(binding);
  }

  double seconds(int repeats) {
    const double begin = seconds_now();
    for (int i = 0; i < repeats; ++i) launch_->run();
    done_->record(Stream::compute);
    done_->wait();
    return (seconds_now() - begin) / repeats;
  }

 private:
  Address hold(std::int64_t bytes) {
    held_.push_back(zeros(backend_, bytes));
    return held_.back()->address();
  }

  Backend& backend_;
  std::unique_ptr<Event> done_;
  std::vector<std::unique_ptr<Memory>> held_;
  std::string name_ = "a kernel that is being measured";
  std::unique_ptr<Launch> launch_;
};

}  // namespace

std::vector<double> measure(Backend& backend, const RegionQuery& query, std::span<const Candidate> candidates,
                            bool accumulate) {
  std::vector<std::unique_ptr<Trial>> trials;
  for (const Candidate& candidate : candidates)
    trials.push_back(std::make_unique<Trial>(backend, query, candidate, accumulate));
  for (const auto& trial : trials) trial->seconds(1);  // the first run is slower
  std::vector<double> least;
  for (const auto& trial : trials) least.push_back(trial->seconds(1));
  const double shortest = std::max(*std::ranges::min_element(least), 1e-9);
  const int repeats = static_cast<int>(std::clamp(shortest_span / shortest, 1.0, double{most_repeats}));
  double spent = 0;  // as if nothing else had run
  for (int round = 0; round < most_rounds && spent < enough; ++round)
    for (std::size_t i = 0; i < trials.size(); ++i) {
      least[i] = std::min(least[i], trials[i]->seconds(repeats));
      spent += least[i] * repeats;
    }
  return least;
}

}  // namespace plexaura
