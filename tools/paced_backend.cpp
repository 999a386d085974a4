// The plugin "paced" simulates a slower processor, so that a few cores can run the ranks of many machines. It
// computes like the CPU backend, but each kernel takes `times` times as long as estimated for the CPU. The
// rank `slow_rank` takes `slow` times as long as the others. With `computes=0`, kernels of 10 us or more
// sleep instead of computing, for timings that do not depend on the load of this machine.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <string_view>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "core/base/error.h"
#include "core/device/forwarding_backend.h"
#include "core/device/plugin.h"
#include "distributed/wire/launcher.h"

namespace plexaura {

namespace {

using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

// Makes a call take a given time by sleeping after it. Waiting times are collected until they reach a
// millisecond, and a sleep that was too long shortens the next ones.
class Pace {
 public:
  template <class Work>
  void keep(Seconds wanted, Work&& work) {
    owed_ += wanted - duration_of(work);
    if (owed_ >= least_sleep) owed_ -= duration_of([&] { std::this_thread::sleep_for(owed_); });
    owed_ = std::max(owed_, -most_credit);
  }

 private:
  template <class Work>
  static Seconds duration_of(Work&& work) {
    const auto begin = Clock::now();
    work();
    return Clock::now() - begin;
  }

  static constexpr Seconds least_sleep{1e-3};
  // The largest credit from kernels that took longer than they should.
  static constexpr Seconds most_credit{10e-3};
  Seconds owed_{0};
};

class PacedLaunch final : public Launch {
 public:
  // `launch` is null if the kernel only sleeps.
  PacedLaunch(std::unique_ptr<Launch> launch, Seconds wanted, std::shared_ptr<Pace> pace)
      : launch_(std::move(launch)), wanted_(wanted), pace_(std::move(pace)) {}
  void run() override {
    pace_->keep(wanted_, [&] {
      if (launch_) launch_->run();
    });
  }

 private:
  std::unique_ptr<Launch> launch_;
  Seconds wanted_;
  std::shared_ptr<Pace> pace_;
};

class PacedKernel final : public Kernel {
 public:
  PacedKernel(std::shared_ptr<const Kernel> kernel, bool computes, Seconds wanted, std::shared_ptr<Pace> pace)
      : kernel_(std::move(kernel)), computes_(computes), wanted_(wanted), pace_(std::move(pace)) {}
  std::size_t workspace() const override { return kernel_->workspace(); }
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<PacedLaunch>(computes_ ? kernel_->bind(binding) : nullptr, wanted_, pace_);
  }

 private:
  std::shared_ptr<const Kernel> kernel_;
  bool computes_;
  Seconds wanted_;
  std::shared_ptr<Pace> pace_;
};

class PacedBackend final : public ForwardingBackend {
 public:
  PacedBackend(std::unique_ptr<Backend> cpu, double times, bool computes)
      : ForwardingBackend(*cpu),
        cpu_(std::move(cpu)),
        info_(cpu_->info()),
        times_(times),
        computes_(computes) {
    info_.name = "paced";
    info_.description += ", paced";
  }

  const BackendInfo& info() const override { return info_; }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates = inner().propose(query);
    std::erase_if(candidates, [](const Candidate& candidate) { return !candidate.has_estimate(); });
    for (Candidate& candidate : candidates)
      candidate.make = [make = std::move(candidate.make), wanted = Seconds(times_ * candidate.seconds),
                        computes = computes_ || candidate.seconds < short_seconds, pace = pace_] {
        return std::make_shared<PacedKernel>(make(), computes, wanted, pace);
      };
    return candidates;
  }

 private:
  // Shorter kernels are computed also with `computes=0`. Among them is the kernel of the tail, which training
  // reads.
  static constexpr double short_seconds = 10e-6;

  std::unique_ptr<Backend> cpu_;
  BackendInfo info_;
  double times_;
  bool computes_;
  std::shared_ptr<Pace> pace_ = std::make_shared<Pace>();
};

double option_of(const BackendOptions& options, std::string_view name, double otherwise, double least) {
  const auto found = options.find(name);
  if (found == options.end()) return otherwise;
  const std::string& text = found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least) || !std::isfinite(value))
    throw UserError(
        fmt::format("the option '{}' of the backend 'paced' is '{}'; it must be a number, {} or more", name,
                    text, least));
  return value;
}

Backend* open_paced(const BackendOptions& options) {
  for (const auto& [name, value] : options)
    if (name != "times" && name != "slow" && name != "slow_rank" && name != "computes")
      throw UserError(fmt::format(
          "the backend 'paced' has no option '{}'; it has: computes, slow, slow_rank, times", name));
  if (options.contains("slow") != options.contains("slow_rank"))
    throw UserError("the options 'slow' and 'slow_rank' of the backend 'paced' need each other; give both");
  const bool is_slow = options.contains("slow_rank") &&
                       launched_rank().value_or(LaunchedRank{}).rank == option_of(options, "slow_rank", 0, 0);
  const double times = option_of(options, "times", 1, 0) * (is_slow ? option_of(options, "slow", 1, 1) : 1);
  return new PacedBackend(make_cpu_backend(), times, option_of(options, "computes", 1, 0) != 0);
}

}  // namespace

}  // namespace plexaura

PLEXAURA_PLUGIN(plexaura::open_paced)
