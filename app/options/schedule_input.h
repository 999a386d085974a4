#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config/keys.h"
#include "training/loop/trainer_options.h"

// The section training.schedule, and the schedule that is made from it.
namespace plexaura {

enum class ScheduleName : std::uint8_t {
  constant,
  step,
  multi_step,
  exponential,
  linear,
  polynomial,
  cosine,
  cosine_restarts,
  cyclic,
  one_cycle,
  plateau,
  sequence
};

// The values of the section, or of one of its parts. Times are in epochs.
struct ScheduleInput {
  ScheduleName name = ScheduleName::constant;
  double warmup_epochs = 0;
  double every_epochs = 0;
  std::vector<double> milestones = {};
  double gamma = 0.1;
  LinearRate linear = {};
  double power = 1;
  double floor = 0;
  double first_epochs = 0;
  std::int64_t growth = 1;
  double up_epochs = 0;
  std::optional<double> down_epochs = {};  // number of epochs in which the rate falls; empty: up_epochs
  Cyclic::Mode cyclic_mode = Cyclic::triangular;
  OneCycle one_cycle = {};
  Plateau plateau = {};
  std::optional<std::string> plateau_mode = {};  // "min" or "max"; empty: the metric's name decides
  std::vector<Section> parts = {};               // sections of `parts`, which schedule_part_keys() reads
  // The values of a part of a sequence; not used otherwise.
  double rate = 1;                         // peak of the part, as a factor of the peak of the schedule
  std::optional<double> epochs = {};       // length of the part in epochs
  std::optional<std::int64_t> steps = {};  // length of the part in steps
};

// The length of a run in steps.
struct RunLength {
  std::int64_t epochs = 1;
  std::int64_t steps_per_epoch = 1;
  bool is_known = true;  // false: the number of steps in an epoch is not known, or does not matter
};

// schedule_keys() returns the keys of `schedule` in `training`, and schedule_part_keys() those of an element of
// training.schedule.parts.
std::vector<Key> schedule_keys(ScheduleInput& input, const TrainerOptions& trainer);
std::vector<Key> schedule_part_keys(ScheduleInput& part);

// Makes a schedule in steps from values that were read from `yaml`. `peak` is the learning rate without any
// reduction. Throws UserError with line and column for values that do not fit each other or the length of
// the run.
Schedule make_schedule(const Section& yaml, const ScheduleInput& input, double peak, DType precision,
                       const RunLength& run);

// Returns Mode::min if smaller values of a metric are better, and Mode::max if larger ones are. `given`
// decides if it is not empty, and otherwise the metric's name. Throws UserError with the place of the
// section's key `mode` if neither does.
Plateau::Mode mode_of(const Section& yaml, const std::string& metric,
                      const std::optional<std::string>& given);

}  // namespace plexaura
