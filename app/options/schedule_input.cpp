#include "app/options/schedule_input.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

#include "app/options/usable_number.h"

namespace plexaura {

namespace {

// Returns the nearest number of steps, at least one. Throws if a known run has none in these epochs.
std::int64_t steps_of(const Section& yaml, const char* key, double epochs, const RunLength& run) {
  const std::int64_t steps = std::llround(epochs * static_cast<double>(run.steps_per_epoch));
  if (run.is_known && steps < 1)
    throw yaml.error(key,
                     fmt::format("is {:g} epochs, less than a step, and an epoch has {} steps; give at "
                                 "least {:.3g}",
                                 epochs, run.steps_per_epoch, 1 / static_cast<double>(run.steps_per_epoch)));
  return std::max<std::int64_t>(steps, 1);
}

// The values from which a schedule is made, with the length and the highest rate of its steps.
struct ScheduleRequest {
  const Section& yaml;
  const ScheduleInput& input;
  double peak = 0;          // highest learning rate, multiplied by the rate of a part
  std::int64_t length = 1;  // number of steps
  const RunLength& run;

  // Returns the nearest number of steps, at least one. Throws if a known run has none in these epochs.
  std::int64_t steps(const char* key, double epochs) const { return steps_of(yaml, key, epochs, run); }
  // Throws if an event that the key plans for this step comes after the last step.
  void check_comes(const char* key, std::int64_t step, std::string_view what) const {
    if (run.is_known && step >= length)
      throw yaml.error(
          key, fmt::format("{} after {} steps, and the {} has {}, so that this never comes; give "
                           "fewer epochs, or make that longer",
                           what, step, length == run.epochs * run.steps_per_epoch ? "run" : "part", length));
  }
  void check_at_most_peak(const char* key, double rate) const {
    if (rate > peak)
      throw yaml.error(key,
                       fmt::format("is {}, above the peak: training.optimizer{} the learning rate {}; give "
                                   "at most that",
                                   rate, input.rate == 1 ? " makes" : " and rate make", peak));
  }
};

MultiStepDecay multi_step(const ScheduleRequest& request) {
  MultiStepDecay decay{.gamma = request.input.gamma};
  const std::vector<double>& epochs = request.input.milestones;
  if (epochs.empty() || !std::ranges::is_sorted(epochs))
    throw request.yaml.error(
        "milestones",
        fmt::format("is [{}]; it must be a list of epochs in increasing order", fmt::join(epochs, ", ")));
  for (const double milestone : epochs) decay.milestones.push_back(request.steps("milestones", milestone));
  request.check_comes("milestones", decay.milestones.back(), "has a drop of the rate");
  return decay;
}

Cyclic cyclic(const ScheduleRequest& request) {
  const ScheduleInput& input = request.input;
  const bool is_damped = input.cyclic_mode == Cyclic::exp_range;
  const std::int64_t rising = request.steps("up_epochs", input.up_epochs);
  if (input.down_epochs) request.check_comes("down_epochs", rising, "lets the rate fall");
  return {
      .rising = rising,
      .falling = input.down_epochs ? request.steps("down_epochs", *input.down_epochs) : rising,
      .floor = input.floor,
      .mode = input.cyclic_mode,
      .gamma = is_damped ? std::pow(input.gamma, 1 / static_cast<double>(request.run.steps_per_epoch)) : 1};
}

Plateau plateau(const ScheduleRequest& request) {
  Plateau decay = request.input.plateau;
  request.check_at_most_peak("min_lr", decay.min_lr);
  decay.mode = mode_of(request.yaml, decay.metric, request.input.plateau_mode);
  return decay;
}

StepDecay step_decay(const ScheduleRequest& request) {
  const std::int64_t every = request.steps("every_epochs", request.input.every_epochs);
  request.check_comes("every_epochs", every, "lets the rate drop");
  return {every, request.input.gamma};
}

// Returns the steps of the warm-up, which may last the whole run.
std::int64_t warmup_steps(const ScheduleRequest& request) {
  const double epochs = request.input.warmup_epochs;
  return epochs == 0 ? 0 : request.steps("warmup_epochs", epochs);
}

Schedule::Decay decay_of(const ScheduleRequest& request) {
  const ScheduleInput& input = request.input;
  request.check_at_most_peak("floor", input.floor);
  switch (input.name) {
    case ScheduleName::step:
      return step_decay(request);
    case ScheduleName::multi_step:
      return multi_step(request);
    case ScheduleName::exponential:
      return ExponentialDecay{request.run.steps_per_epoch, input.gamma};
    case ScheduleName::linear:
      return LinearRate{input.linear.start, input.linear.end, request.length};
    case ScheduleName::polynomial:
      return PolynomialDecay{request.length, input.power};
    case ScheduleName::cosine:
      return CosineDecay{request.length, input.floor};
    case ScheduleName::cosine_restarts:
      return CosineRestarts{request.steps("first_epochs", input.first_epochs), input.growth, input.floor};
    case ScheduleName::cyclic:
      return cyclic(request);
    case ScheduleName::one_cycle:
      return OneCycle{request.length, input.one_cycle.rising, input.one_cycle.start_divisor,
                      input.one_cycle.end_divisor};
    case ScheduleName::plateau:
      return plateau(request);
    case ScheduleName::constant:
    case ScheduleName::sequence:
      break;
  }
  return ConstantRate{};
}

// Returns the length of a part in steps. Returns nothing if the file does not set it.
std::optional<std::int64_t> length_of(const Section& yaml, const ScheduleInput& part, const RunLength& run) {
  if (part.epochs && part.steps) throw yaml.error("steps", "and epochs are both given; give one of them");
  if (!part.epochs) return part.steps;
  return steps_of(yaml, "epochs", *part.epochs, run);
}

// Returns the step at which a part ends that begins at step `begin`. Throws if parts do not fill the run.
std::int64_t end_of_part(const Section& yaml, const ScheduleInput& part, std::int64_t begin, bool is_last,
                         const RunLength& run) {
  const std::int64_t end_of_run = run.epochs * run.steps_per_epoch;
  const std::optional<std::int64_t> length = length_of(yaml, part, run);
  if (!length && !is_last)
    throw yaml.error("epochs",
                     "is missing; give the length of the part in epochs, or in steps as steps; only the last "
                     "part needs none");
  if (!length) return std::max(end_of_run, begin + 1);
  const char* const key = part.epochs ? "epochs" : "steps";
  if (run.is_known && *length >= end_of_run - begin + (is_last ? 1 : 0))
    throw yaml.error(
        key, fmt::format("makes the part end {} steps after its start at step {}, and the run has {} "
                         "steps{}; give fewer, or more training.epochs",
                         *length, begin, end_of_run, is_last ? "" : ", so that the next part never begins"));
  if (run.is_known && is_last && begin + *length < end_of_run)
    throw yaml.error(key,
                     fmt::format("ends the last part at step {}, and the run has {} steps; leave it out, so "
                                 "that the part lasts until the end of the run",
                                 begin + *length, end_of_run));
  return begin + *length;
}

Schedule make_sequence(const Section& yaml, const ScheduleInput& input, double peak, DType precision,
                       const RunLength& run) {
  if (input.parts.empty()) throw yaml.error("parts", "is an empty list; give schedules, or another name");
  std::vector<Schedule> parts;
  std::vector<std::int64_t> ends;
  std::int64_t begin = 0;
  for (const Section& section : input.parts) {
    ScheduleInput part;
    read_keys(section, schedule_part_keys(part));
    check_rate_usable(section, part.rate, peak, precision);
    const bool is_last = parts.size() + 1 == input.parts.size();
    const std::int64_t end = end_of_part(section, part, begin, is_last, run);
    const double own_peak = peak * part.rate;
    const ScheduleRequest request{section, part, own_peak, end - begin, run};
    parts.emplace_back(Schedule::Options{.peak = own_peak, .decay = decay_of(request)});
    if (!is_last) ends.push_back(end);
    begin = end;
  }
  return Schedule::sequence(std::move(parts), std::move(ends));
}

}  // namespace

Plateau::Mode mode_of(const Section& yaml, const std::string& metric,
                      const std::optional<std::string>& given) {
  if (given) return *given == "max" ? Plateau::max : Plateau::min;
  if (const auto mode = mode_by_name(metric)) return *mode;
  throw yaml.error(
      "mode", fmt::format("is missing, and does not follow from the name '{}' of the metric; give max if "
                          "larger values are better, and otherwise min",
                          metric));
}

Schedule make_schedule(const Section& yaml, const ScheduleInput& input, double peak, DType precision,
                       const RunLength& run) {
  if (input.name == ScheduleName::sequence) return make_sequence(yaml, input, peak, precision, run);
  const ScheduleRequest request{yaml, input, peak, run.epochs * run.steps_per_epoch, run};
  return Schedule({.peak = peak, .warmup_steps = warmup_steps(request), .decay = decay_of(request)});
}

}  // namespace plexaura
