#include "training/loop/learning_rate_sweep.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <utility>

#include "training/loop/trainer.h"

namespace plexaura {

namespace {

constexpr std::size_t recent = 5;    // number of losses in the mean that ends the sweep
constexpr std::size_t beside = 4;    // number of losses on each side that the smoothed loss includes
constexpr double most_growth = 4;    // largest growth of the mean over its minimum
constexpr double least_fall = 0.05;  // least fall, as a share of the first smoothed loss

double mean_of(std::span<const SweptRate> rates) {
  const auto add = [](double sum, const SweptRate& rate) { return sum + rate.loss; };
  return std::accumulate(rates.begin(), rates.end(), 0.0, add) / static_cast<double>(rates.size());
}

// Collects the losses, which are the same on all ranks, and ends the run when they have grown.
class Sweeping final : public TrainingObserver {
 public:
  explicit Sweeping(Trainer& trainer) : trainer_(trainer) {}

  void step(const StepRecord& record, std::int64_t) override {
    if (has_grown_) return;
    rates_.push_back({.learning_rate = record.learning_rate, .loss = record.loss});
    const double mean = mean_of(std::span(rates_).last(std::min(recent, rates_.size())));
    smallest_ = std::min(smallest_, mean);
    has_grown_ = mean > most_growth * std::abs(smallest_);
    if (has_grown_) trainer_.end_early();
  }

  std::vector<SweptRate> smoothed() const {
    std::vector<SweptRate> rates = rates_;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const std::size_t first = i - std::min(beside, i);
      const std::size_t end = std::min(i + beside + 1, rates.size());
      rates[i].smoothed = mean_of(std::span(rates).subspan(first, end - first));
    }
    return rates;
  }

 private:
  Trainer& trainer_;
  std::vector<SweptRate> rates_;
  double smallest_ = std::numeric_limits<double>::infinity();
  bool has_grown_ = false;
};

// Keeps the weights and buffers during the sweep. restore() writes them back, and resets the optimizer's state.
class KeptWeights {
 public:
  explicit KeptWeights(ParameterStore& store) : store_(store) {
    for (const ParameterSpec& spec : store.specs()) values_.push_back(store.read(spec.name));
  }
  void restore() {
    for (std::size_t i = 0; i < values_.size(); ++i) store_.write(store_.specs()[i].name, values_[i]);
    store_.reset_states();
  }

 private:
  ParameterStore& store_;
  std::vector<Tensor> values_;
};

void check_sweep(const SweepRange& range) {
  if (!(range.first > 0) || !(range.last > range.first) || !std::isfinite(range.last) || range.steps < 2)
    throw UserError(
        fmt::format("a sweep of {} learning rates from {} to {} is empty; give two steps or more, and a last "
                    "rate above the first, which is above 0",
                    range.steps, range.first, range.last));
}

Schedule schedule_of(const SweepRange& range) {
  std::vector<Schedule> rates;
  std::vector<std::int64_t> milestones;
  for (std::int64_t step = 0; step < range.steps; ++step) {
    const double share = static_cast<double>(step) / static_cast<double>(range.steps - 1);
    rates.emplace_back(range.first * std::pow(range.last / range.first, share));
    if (step > 0) milestones.push_back(step);
  }
  return Schedule::sequence(std::move(rates), std::move(milestones));
}

// Returns the options without settings that a sweep does not use.
TrainerOptions options_of_sweep(TrainerOptions options, const SweepRange& range) {
  options.learning_rate = schedule_of(range);
  options.epochs = options.steps.emplace(range.steps);  // an epoch has at least one step
  options.optimizer.ema.reset();
  options.goal.reset();
  options.save_every.reset();
  options.output.clear();
  options.ends_on_divergence = true;
  return options;
}

}  // namespace

std::optional<double> suggested_rate(std::span<const SweptRate> rates) {
  if (rates.size() < 3) return std::nullopt;
  const auto lowest = std::ranges::min_element(rates, {}, &SweptRate::smoothed);
  const double first = rates.front().smoothed;
  if (!(first - lowest->smoothed >= least_fall * std::abs(first))) return std::nullopt;
  const auto end = std::min(static_cast<std::size_t>(lowest - rates.begin()) + 1, rates.size() - 1);
  std::size_t steepest = 1;
  const auto change = [&](std::size_t i) { return rates[i + 1].smoothed - rates[i - 1].smoothed; };
  for (std::size_t i = 2; i < end; ++i)
    if (change(i) < change(steepest)) steepest = i;
  return rates[steepest].learning_rate;
}

LearningRateSweep sweep_learning_rates(TrainerParts parts, TrainerOptions options, const SweepRange& range) {
  check_sweep(range);
  if (parts.strategy != nullptr && parts.strategy->parts().scope == GradientScope::local)
    throw UserError(
        "a sweep of learning rates needs one loss for each step, and with this strategy each rank makes "
        "steps of its own; choose another one, in YAML distributed.strategy allreduce");
  SingleProcess alone;
  Collective& ranks = parts.collective != nullptr ? *parts.collective : alone;
  KeptWeights kept = together(ranks, "keeping the weights", [&] { return KeptWeights(parts.store); });
  parts.validation = nullptr;
  LearningRateSweep sweep;
  const auto run = [&] {
    Trainer trainer(parts, options_of_sweep(std::move(options), range));
    Sweeping sweeping(trainer);
    sweep.signal = trainer.run(sweeping).signal;
    sweep.rates = sweeping.smoothed();
  };
  try {
    run();
  } catch (...) {
    kept.restore();
    throw;
  }
  together(ranks, "restoring the weights", [&] { kept.restore(); });
  if (sweep.signal == 0) sweep.suggestion = suggested_rate(sweep.rates);
  return sweep;
}

}  // namespace plexaura
