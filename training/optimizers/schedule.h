#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "training/optimizers/plateau.h"

namespace plexaura {

// The learning rate stays at its peak.
struct ConstantRate {};

// peak · gamma^floor(step / every)
struct StepDecay {
  std::int64_t every = 1;  // number of steps after which the rate is multiplied by gamma again
  double gamma = 0.1;
};

// peak · gamma^n, where n is the number of milestones that have been reached, as torch.optim.lr_scheduler.MultiStepLR.
struct MultiStepDecay {
  // Numbers of steps, sorted, from 1 on; equal numbers count one by one.
  std::vector<std::int64_t> milestones = {};
  double gamma = 0.1;
};

// peak · gamma^(step / steps): after `steps` steps the rate is multiplied by gamma, in equal factors for each
// step. With `steps` = 1 it is ExponentialLR.
struct ExponentialDecay {
  std::int64_t steps = 1;
  double gamma = 0.9;  // above 0 and at most 1
};

// peak · (start + (end − start) · t), where t goes from 0 at step 0 to 1 at step `steps`, and stays 1 after that.
struct LinearRate {
  double start = 1;  // rate at step 0, as a factor of the peak, from 0 to 1; `start` is above 0
  double end = 0;
  std::int64_t steps = 1;
};

// peak · (1 − t)^power, where t goes from 0 at the end of the warm-up to 1 at step `steps`, and stays 1 after that, as
// PolynomialLR.
struct PolynomialDecay {
  std::int64_t steps = 1;  // number of steps of the schedule, including warm-up
  double power = 1;        // above 0
};

// floor + (peak − floor) · (1 + cos(π · t)) / 2, where t goes from 0 at the end of the warm-up to 1 at step
// `steps`, and stays 1 after that (Loshchilov and Hutter 2017, one period).
struct CosineDecay {
  std::int64_t steps = 1;  // number of steps of the schedule, including warm-up
  double floor = 0;        // the learning rate at the end
};

// Repeats CosineDecay: the first period, which begins at the end of the warm-up, has `first` steps, and each further
// one `growth` times as many as the one before it, as CosineAnnealingWarmRestarts (Loshchilov and Hutter 2017).
struct CosineRestarts {
  std::int64_t first = 1;
  std::int64_t growth = 1;  // factor from the steps of one period to those of the next one; 1 or more
  double floor = 0;  // lowest rate, from 0 to the peak; the last step of a period has a slightly higher rate
};

// Rises along a line from the floor to the peak in `rising` steps, falls along a line to the floor in `falling` steps,
// and repeats this, as CyclicLR (Smith 2017). It contains its own warm-up, so `warmup_steps` must be 0.
struct Cyclic {
  enum class Mode : std::uint8_t {
    triangular,   // all cycles rise to the peak
    triangular2,  // each cycle rises half as far above the floor as the one before it
    exp_range     // the height above the floor is multiplied by gamma^step
  };
  using enum Mode;  // Cyclic::exp_range

  std::int64_t rising = 1;   // number of steps from the floor to the peak
  std::int64_t falling = 1;  // number of steps from the peak to the floor
  double floor = 0;          // lowest rate, from 0 to the peak
  Mode mode = Mode::triangular;
  double gamma = 1;  // for exp_range: above 0 and at most 1; 1 for other modes
};

// Rises along half a cosine from peak / start_divisor, at step 0, to the peak, at step rising · steps − 1,
// and falls along half a cosine to peak / (start_divisor · end_divisor), at the last step (Smith and Topin
// 2018, in the commonly used form with cosines). It contains its own warm-up, so `warmup_steps` must be 0.
struct OneCycle {
  std::int64_t steps = 1;  // number of steps of the schedule
  double rising = 0.3;     // share of the steps in which the rate rises, from 0 to 1
  double start_divisor = 25;
  double end_divisor = 1e4;
};

// The learning rate of each step: a pure function of the step's number and, with a Plateau, of what was observed, so
// that a resumed run needs nothing else. If a Trainer continues with another number of steps in an epoch, it passes
// the step's number that the same place would have had with that length of an epoch from the beginning. Steps count
// from 0. During the first `warmup_steps` (w) the decay's rate is multiplied by (step + 1) / w: the warm-up rises
// linearly and reaches the full rate with its last step.
class Schedule {
 public:
  using Decay = std::variant<ConstantRate, StepDecay, MultiStepDecay, ExponentialDecay, LinearRate,
                             PolynomialDecay, CosineDecay, CosineRestarts, Cyclic, OneCycle, Plateau>;

  struct Options {
    double peak = 0.01;  // the learning rate without any reduction; > 0
    std::int64_t warmup_steps = 0;
    Decay decay = ConstantRate{};
  };

  // Throws UserError that names the option for a value outside its range.
  explicit Schedule(Options options);
  // A constant rate: `.learning_rate = 0.01`.
  Schedule(double rate) : Schedule(Options{.peak = rate}) {}

  // Returns the schedules one after the other, as torch.optim.lr_scheduler.SequentialLR: the first until step
  // milestones[0], the second from there until milestones[1], and so on; the last one goes on. Each has its own peak, and
  // counts its steps from 0. Throws UserError unless there is one milestone between two schedules, and they increase from 1
  // on; and for a Plateau.
  static Schedule sequence(std::vector<Schedule> parts, std::vector<std::int64_t> milestones);

  // Returns the options; for a sequence, those of its first schedule.
  const Options& options() const { return options_; }
  // Returns the highest peak of the schedules of a sequence; otherwise the peak of the options.
  double peak() const;
  // Returns the Plateau, or null if the decay is another one.
  const Plateau* plateau() const { return std::get_if<Plateau>(&options_.decay); }
  // Throws InternalError for a negative step. Only a Plateau reads the state.
  double learning_rate(std::int64_t step, const PlateauState& state = {}) const;
  // Returns the state of the Plateau after its metric had this value when `steps` steps were made. During the warm-up
  // the state does not change. Throws UserError if the value is not finite, and InternalError without a Plateau.
  PlateauState observe(double value, std::int64_t steps, const PlateauState& state) const;

 private:
  Options options_;
  // The schedules of a sequence; null for a single schedule.
  std::shared_ptr<const std::vector<Schedule>> parts_ = nullptr;
  std::vector<std::int64_t> milestones_ = {};
};

}  // namespace plexaura
