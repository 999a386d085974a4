#include "training/optimizers/schedule.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <numbers>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace plexaura {
namespace {

void check_schedule(bool holds, std::string_view option, double value, std::string_view rule) {
  if (!holds)
    throw UserError(
        fmt::format("the learning-rate schedule has {} = {}; it must be {}", option, value, rule));
}

void require_above_zero(std::string_view option, double value) {
  check_schedule(std::isfinite(value) && value > 0, option, value, "a number > 0");
}

void require_count(std::string_view option, std::int64_t value) {
  check_schedule(value >= 1, option, static_cast<double>(value), "a whole number >= 1");
}

void check(const ConstantRate&, const Schedule::Options&) {}

void require_gamma(double gamma) {
  check_schedule(gamma > 0 && gamma <= 1, "gamma", gamma, "a number > 0 and at most 1");
}

void require_floor(double floor, const Schedule::Options& options) {
  check_schedule(floor >= 0 && floor <= options.peak, "floor", floor, "a number from 0 to the peak");
}

void require_warmup_within(std::int64_t steps, const Schedule::Options& options) {
  check_schedule(options.warmup_steps <= steps, "warmup_steps", static_cast<double>(options.warmup_steps),
                 fmt::format("at most the {} steps of the run", steps));
}

void require_no_warmup(std::string_view schedule, const Schedule::Options& options) {
  check_schedule(options.warmup_steps == 0, "warmup_steps", static_cast<double>(options.warmup_steps),
                 fmt::format("0 with {}, which warms up by itself", schedule));
}

void check(const StepDecay& decay, const Schedule::Options&) {
  require_count("every", decay.every);
  require_gamma(decay.gamma);
}

void check(const MultiStepDecay& decay, const Schedule::Options&) {
  std::int64_t least = 1;
  for (const std::int64_t milestone : decay.milestones) {
    check_schedule(milestone >= least, "milestone", static_cast<double>(milestone),
                   fmt::format("at least {}, as milestones are sorted and begin at 1", least));
    least = milestone;
  }
  require_gamma(decay.gamma);
}

void check(const ExponentialDecay& decay, const Schedule::Options&) {
  require_count("steps", decay.steps);
  require_gamma(decay.gamma);
}

void check(const LinearRate& rate, const Schedule::Options&) {
  require_count("steps", rate.steps);
  check_schedule(rate.start > 0 && rate.start <= 1, "start", rate.start, "a number > 0 and at most 1");
  check_schedule(rate.end >= 0 && rate.end <= 1, "end", rate.end, "a number from 0 to 1");
}

void check(const PolynomialDecay& decay, const Schedule::Options& options) {
  require_count("steps", decay.steps);
  require_above_zero("power", decay.power);
  require_warmup_within(decay.steps, options);
}

void check(const CosineDecay& decay, const Schedule::Options& options) {
  require_count("steps", decay.steps);
  require_floor(decay.floor, options);
  require_warmup_within(decay.steps, options);
}

void check(const CosineRestarts& decay, const Schedule::Options& options) {
  require_count("first", decay.first);
  require_count("growth", decay.growth);
  require_floor(decay.floor, options);
}

void check(const Cyclic& decay, const Schedule::Options& options) {
  require_count("rising", decay.rising);
  require_count("falling", decay.falling);
  require_floor(decay.floor, options);
  require_gamma(decay.gamma);
  check_schedule(decay.mode == Cyclic::exp_range || decay.gamma == 1, "gamma", decay.gamma,
                 "1 for all modes but exp_range");
  require_no_warmup("cyclic", options);
}

void check(const OneCycle& decay, const Schedule::Options& options) {
  require_count("steps", decay.steps);
  check_schedule(decay.rising >= 0 && decay.rising <= 1, "rising", decay.rising, "a number from 0 to 1");
  require_above_zero("start_divisor", decay.start_divisor);
  require_above_zero("end_divisor", decay.end_divisor);
  require_no_warmup("one-cycle", options);
}

void check(const Plateau& decay, const Schedule::Options& options) {
  check_schedule(decay.factor > 0 && decay.factor < 1, "factor", decay.factor, "a number > 0 and < 1");
  check_schedule(decay.threshold >= 0 && decay.threshold < 1, "threshold", decay.threshold,
                 "a number from 0 to below 1");
  check_schedule(decay.min_lr >= 0 && decay.min_lr <= options.peak, "min_lr", decay.min_lr,
                 "a number from 0 to the peak");
  for (const auto& [name, count] :
       {std::pair{"patience", decay.patience}, std::pair{"cooldown", decay.cooldown}})
    check_schedule(count >= 0, name, static_cast<double>(count), "a whole number >= 0");
}

// Returns the value at `share` of a half cosine that goes from `from` at 0 to `to` at 1.
double half_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * std::clamp(share, 0.0, 1.0))) / 2;
}

// Returns how far `step` is on the way from the end of the warm-up to step `steps`: from 0 to 1.
double share_after_warmup(std::int64_t step, std::int64_t steps, const Schedule::Options& options) {
  if (step >= steps) return 1;
  const std::int64_t done = std::max<std::int64_t>(step - options.warmup_steps, 0);
  return static_cast<double>(done) /
         static_cast<double>(std::max<std::int64_t>(steps - options.warmup_steps, 1));
}

double rate(const ConstantRate&, const Schedule::Options& options, std::int64_t, const PlateauState&) {
  return options.peak;
}

double rate(const StepDecay& decay, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  const std::int64_t reductions = step / decay.every;
  return options.peak * std::pow(decay.gamma, static_cast<double>(reductions));
}

double rate(const MultiStepDecay& decay, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  const auto reached = std::ranges::upper_bound(decay.milestones, step) - decay.milestones.begin();
  return options.peak * std::pow(decay.gamma, static_cast<double>(reached));
}

double rate(const ExponentialDecay& decay, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  return options.peak * std::pow(decay.gamma, static_cast<double>(step) / static_cast<double>(decay.steps));
}

double rate(const LinearRate& line, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  const double share = static_cast<double>(std::min(step, line.steps)) / static_cast<double>(line.steps);
  return options.peak * (line.start + (line.end - line.start) * share);
}

double rate(const PolynomialDecay& decay, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  return options.peak * std::pow(1 - share_after_warmup(step, decay.steps, options), decay.power);
}

double rate(const CosineDecay& decay, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  return half_cosine(options.peak, decay.floor, share_after_warmup(step, decay.steps, options));
}

double rate(const CosineRestarts& decay, const Schedule::Options& options, std::int64_t step,
            const PlateauState&) {
  std::int64_t done = std::max<std::int64_t>(step - options.warmup_steps, 0);
  std::int64_t period = decay.first;
  if (decay.growth == 1) done %= period;
  while (done >= period) {
    done -= period;
    // If the next period would exceed the largest int64, it becomes that number. No run reaches the end of
    // such a period.
    period = period > std::numeric_limits<std::int64_t>::max() / decay.growth
                 ? std::numeric_limits<std::int64_t>::max()
                 : period * decay.growth;
  }
  return half_cosine(options.peak, decay.floor, static_cast<double>(done) / static_cast<double>(period));
}

double rate(const Cyclic& decay, const Schedule::Options& options, std::int64_t step, const PlateauState&) {
  const auto rising = static_cast<double>(decay.rising);
  const double length = rising + static_cast<double>(decay.falling);
  const auto now = static_cast<double>(step);
  const double cycle = std::floor(now / length);
  const double within = now - cycle * length;
  const double share = within <= rising ? within / rising : (length - within) / (length - rising);
  const double height = decay.mode == Cyclic::triangular2 ? std::pow(0.5, cycle) : std::pow(decay.gamma, now);
  return decay.floor + (options.peak - decay.floor) * share * height;
}

double rate(const OneCycle& decay, const Schedule::Options& options, std::int64_t step, const PlateauState&) {
  const double start = options.peak / decay.start_divisor;
  const double end = start / decay.end_divisor;
  const double last = static_cast<double>(decay.steps) - 1;
  const double top = std::max(decay.rising * static_cast<double>(decay.steps) - 1, 0.0);
  const auto now = static_cast<double>(step);
  if (now < top) return half_cosine(start, options.peak, now / top);
  if (now >= last) return last > top ? end : options.peak;
  return half_cosine(options.peak, end, (now - top) / (last - top));
}

double rate(const Plateau& decay, const Schedule::Options& options, std::int64_t, const PlateauState& state) {
  const double reduced = options.peak * std::pow(decay.factor, static_cast<double>(state.reductions));
  return std::max(reduced, decay.min_lr);
}

}  // namespace

Schedule::Schedule(Options options) : options_(std::move(options)) {
  require_above_zero("peak", options_.peak);
  check_schedule(options_.warmup_steps >= 0, "warmup_steps", static_cast<double>(options_.warmup_steps),
                 "a whole number >= 0");
  std::visit([&](const auto& decay) { check(decay, options_); }, options_.decay);
}

Schedule Schedule::sequence(std::vector<Schedule> parts, std::vector<std::int64_t> milestones) {
  if (parts.empty() || milestones.size() + 1 != parts.size())
    throw UserError(
        fmt::format("a sequence of {} schedules has {} milestones; give one between two schedules",
                    parts.size(), milestones.size()));
  std::int64_t before = 0;
  for (const std::int64_t milestone : milestones) {
    check_schedule(milestone > before, "milestone", static_cast<double>(milestone),
                   fmt::format("above {}, where the schedule before it begins", before));
    before = milestone;
  }
  for (const Schedule& part : parts)
    if (part.plateau() != nullptr)
      throw UserError(
          "a sequence of schedules has a Plateau, whose metric counts for a whole run; leave it out");
  Schedule made(parts.front().options_);
  made.parts_ = std::make_shared<const std::vector<Schedule>>(std::move(parts));
  made.milestones_ = std::move(milestones);
  return made;
}

double Schedule::peak() const {
  if (!parts_) return options_.peak;
  const auto highest = std::ranges::max_element(*parts_, {}, &Schedule::peak);
  return highest->peak();
}

double Schedule::learning_rate(std::int64_t step, const PlateauState& state) const {
  if (step < 0)
    throw InternalError(fmt::format("the learning rate of step {} was requested; steps count from 0", step));
  if (parts_) {
    const auto passed = std::ranges::upper_bound(milestones_, step) - milestones_.begin();
    const auto part = static_cast<std::size_t>(passed);
    return (*parts_)[part].learning_rate(part == 0 ? step : step - milestones_[part - 1], state);
  }
  const double full =
      std::visit([&](const auto& decay) { return rate(decay, options_, step, state); }, options_.decay);
  if (step >= options_.warmup_steps) return full;
  return full * static_cast<double>(step + 1) / static_cast<double>(options_.warmup_steps);
}

PlateauState Schedule::observe(double value, std::int64_t steps, const PlateauState& state) const {
  if (plateau() == nullptr) throw InternalError("a metric was observed for a schedule without a plateau");
  const PlateauState next = observed(*plateau(), state, value);
  const bool is_in_warmup = options_.warmup_steps > 0 && steps <= options_.warmup_steps;
  return is_in_warmup ? state : next;
}

}  // namespace plexaura
