// Exchanges real buckets, and sleeps as long as a training step would compute:
//   mpirun -n 2 build/dev/replay_step --forward 0.1 --backward 0.2 --bucket 4000000@0.05
// So a few cores can run many ranks, which use the links like a training run.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tools/tool.h"

#include "core/base/error.h"
#include "core/base/print.h"
#include "core/exchange/collective.h"
#include "distributed/communicator/communicator.h"
#include "distributed/communicator/run_ranks.h"
#include "distributed/summing/root_sum.h"

namespace plexaura {
namespace {

struct PlannedBucket {
  std::int64_t bytes = 0;
  double ready = 0;  // when the bucket is ready, in seconds since the beginning of the backward pass
};

struct SlowRank {
  int rank = 0;
  double factor = 1;
};

struct Plan {
  double forward = 0;
  double backward = 0;
  double update = 0;
  std::vector<PlannedBucket> buckets;
  std::vector<SlowRank> slow;
  double spread = 0;  // standard deviation of the logarithm of a rank's compute time in a step
  // True: buckets are exchanged when they are ready, instead of after the backward pass.
  bool overlap = false;
  std::string strategy = "allreduce";
  std::string algorithm = "auto";
  std::int64_t steps = 5;
};

constexpr double most_seconds = 3600;
// With this spread, one rank in a thousand takes about 500 times the median.
constexpr double most_spread = 2;

using Clock = std::chrono::steady_clock;

template <class A, class B>
bool read_pair(const std::string& text, char between, A& first, B& second) {
  std::istringstream stream(text);
  char found = 0;
  return stream >> first >> found >> second && found == between && stream.peek() == EOF;
}

void read_buckets(const std::vector<std::string>& texts, Plan& plan) {
  for (const std::string& text : texts) {
    PlannedBucket bucket;
    if (!read_pair(text, '@', bucket.bytes, bucket.ready) || bucket.bytes < 4 || !(bucket.ready >= 0) ||
        bucket.ready > plan.backward || (!plan.buckets.empty() && bucket.ready < plan.buckets.back().ready))
      throw UserError(
          fmt::format("--bucket: '{}' must be BYTES@SECONDS, not after the end of the backward pass, and in "
                      "the order of the seconds",
                      text));
    plan.buckets.push_back(bucket);
  }
}

void read_slow(const std::vector<std::string>& texts, Plan& plan) {
  for (const std::string& text : texts) {
    SlowRank slow;
    if (!read_pair(text, ':', slow.rank, slow.factor) || slow.rank < 0 || !(slow.factor > 0))
      throw UserError(fmt::format("--slow: '{}' must be RANK:FACTOR", text));
    const auto is_same = [&](const SlowRank& other) { return other.rank == slow.rank; };
    if (std::ranges::any_of(plan.slow, is_same))
      throw UserError(fmt::format("--slow: rank {} has two factors; give it one", slow.rank));
    plan.slow.push_back(slow);
  }
}

class Replay {
 public:
  Replay(Communicator& ranks, const Plan& plan)
      : ranks_(ranks), plan_(plan), root_(ranks, 0, true), draws_(static_cast<unsigned>(ranks.rank())) {
    for (const SlowRank& slow : plan.slow)
      if (slow.rank == ranks.rank()) factor_of_rank_ = slow.factor;
    std::int64_t most = 1;
    for (const PlannedBucket& bucket : plan.buckets) {
      most = std::max(most, bucket.bytes);
      all_bytes_ += static_cast<double>(bucket.bytes);
    }
    window_.emplace(ranks.allocate_shared(static_cast<std::size_t>(most), "the buckets"));
    ranks.choose_algorithm(plan.algorithm);
  }

  void step() {
    factor_ = factor_of_rank_ * std::exp(plan_.spread * normal_(draws_));
    begin_ = computed_ = Clock::now();
    compute(plan_.forward);
    const Clock::time_point backward = computed_;
    compute(plan_.backward);
    if (!plan_.overlap) std::this_thread::sleep_until(computed_);
    for (const PlannedBucket& bucket : plan_.buckets) {
      std::this_thread::sleep_until(backward + duration(bucket.ready));
      exchange(bucket.bytes);
      compute(plan_.update * static_cast<double>(bucket.bytes) / all_bytes_);
      if (!plan_.overlap) std::this_thread::sleep_until(computed_);
    }
    exchange(tail_bytes);
    std::this_thread::sleep_until(computed_);
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  static constexpr std::int64_t tail_bytes = 128;

  Clock::duration duration(double seconds) const {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds * factor_));
  }

  // Adds `seconds` to the time for which the device still has to compute.
  void compute(double seconds) { computed_ = std::max(computed_, Clock::now()) + duration(seconds); }

  void exchange(std::int64_t bytes) {
    const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
    if (plan_.strategy == "allreduce")
      return ranks_.sum_window(*window_, 0, DType::float32, count, "a bucket");
    root_.sum(DType::float32, {window_->data(), static_cast<std::size_t>(count) * sizeof(float)}, "a bucket");
  }

  Communicator& ranks_;
  const Plan& plan_;
  RootSum root_;
  std::optional<SharedWindow> window_;
  std::mt19937 draws_;
  std::normal_distribution<double> normal_;
  double factor_of_rank_ = 1;
  double factor_ = 1;  // factor of this step's compute time
  double all_bytes_ = 0;
  Clock::time_point begin_;
  Clock::time_point computed_;  // time at which all work that was started will be done
};

// Throws UserError for a slow rank that does not exist.
void check_slow(const Plan& plan, int ranks) {
  for (const SlowRank& slow : plan.slow)
    if (slow.rank >= ranks)
      throw UserError(
          fmt::format("replay_step: --slow: there is no rank {}; the last is {}", slow.rank, ranks - 1));
}

// The number of first steps that are not timed, because sums try each pace in them.
constexpr int untimed_steps = 3;

int replay(Communicator& ranks, const Plan& plan) {
  together(ranks, "reading the command line", [&] { check_slow(plan, ranks.size()); });
  Replay replay(ranks, plan);
  for (int i = 0; i < untimed_steps; ++i) replay.step();
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < plan.steps; ++i) {
    replay.step();
    seconds.push_back(replay.seconds());
  }
  if (ranks.rank() == 0)
    print_output(fmt::format("{{\"ranks\": {}, \"hosts\": {}, \"seconds\": [{:.6f}]}}\n", ranks.size(),
                             ranks.place().count, fmt::join(seconds, ", ")));
  return 0;
}

}  // namespace
}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  Plan plan;
  std::vector<std::string> buckets;
  std::vector<std::string> slow;
  CLI::App app(
      "Sleeps as long as a training step computes, and exchanges real buckets. Prints the seconds of each "
      "step of rank 0 "
      "as JSON. Start it with mpirun.",
      "replay_step");
  app.add_option("--forward", plan.forward, "seconds")->check(number(0, most_seconds));
  app.add_option("--backward", plan.backward, "seconds")->check(number(0, most_seconds));
  app.add_option("--update", plan.update, "seconds")->check(number(0, most_seconds));
  app.add_option("--bucket", buckets,
                 "BYTES@SECONDS: since the beginning of the backward pass; may be repeated")
      ->required();
  app.add_option("--slow", slow, "RANK:FACTOR: a rank whose computation takes FACTOR times as long");
  app.add_option("--spread", plan.spread,
                 "of what each rank computes in each step: the sigma of a log-normal distribution")
      ->check(number(0, most_spread));
  app.add_flag("--overlap", plan.overlap, "exchanges buckets when they are ready, as on a device");
  app.add_option("--strategy", plan.strategy, "allreduce or reduce-broadcast")
      ->check(CLI::IsMember({"allreduce", "reduce-broadcast"}));
  const CLI::Option* algorithm = app.add_option("--algorithm", plan.algorithm, "distributed.algorithm");
  app.add_option("--steps", plan.steps, "steps that are timed, after three others")->check(whole_number(1));
  int status = 0;
  const int tool_status = run_tool(app, argc, argv, [&] {
    read_buckets(buckets, plan);
    read_slow(slow, plan);
    if (plan.strategy != "allreduce" && algorithm->count() > 0)
      throw UserError("--algorithm is for the strategy allreduce; leave it out");
    status = run_ranks({}, [&](Communicator& ranks) { return replay(ranks, plan); });
  });
  return tool_status != 0 ? tool_status : status;
}
