#include <algorithm>
#include <iterator>

#include "app/options/run_keys.h"

namespace plexaura {

namespace {

// Makes keys whose names begin with `prefix` and that have an effect only with some schedules.
struct ScheduleTable {
  std::string prefix;

  Key named(Key key) const {
    key.name = prefix + key.name;
    return key;
  }
  Key with(std::vector<std::string> schedules, Key key) const {
    key.needs = {.key = prefix + "name", .values = std::move(schedules)};
    return named(std::move(key));
  }
};

constexpr NumberRange some_epochs{.maximum = most_epochs, .above = 0};
constexpr NumberRange zero_to_one{.maximum = 1, .above = 0};

// Returns the keys that both a whole schedule and a part of a schedule have.
std::vector<Key> decay_keys(ScheduleInput& input, const ScheduleTable& table) {
  Key gamma_of_cycles = table.named(
      {.name = "gamma",
       .into = &input.gamma,
       .range = zero_to_one,
       .required = true,
       .meaning = "`exp_range` multiplies the height of the cycles by this factor in each epoch"});
  gamma_of_cycles.needs = {.key = table.prefix + "mode", .values = {"exp_range"}};
  // `mode` comes first, because a row of `gamma` needs its value.
  return {
      table.with({"cyclic"},
                 {.name = "mode",
                  .into = one_of(input.cyclic_mode, {{"triangular", Cyclic::triangular},
                                                     {"triangular2", Cyclic::triangular2},
                                                     {"exp_range", Cyclic::exp_range}}),
                  .meaning = "`triangular2` halves the height after each cycle, and `exp_range` lowers it in "
                             "each step"}),
      table.with({"step"}, {.name = "every_epochs",
                            .into = &input.every_epochs,
                            .range = some_epochs,
                            .required = true,
                            .meaning = "epochs between two drops of the rate"}),
      table.with({"multi_step"}, {.name = "milestones",
                                  .into = &input.milestones,
                                  .range = some_epochs,
                                  .required = true,
                                  .meaning = "the epochs after which the rate drops, in increasing order"}),
      table.with(
          {"step", "multi_step"},
          {.name = "gamma", .into = &input.gamma, .range = zero_to_one, .meaning = "factor of each drop"}),
      table.with({"exponential"}, {.name = "gamma",
                                   .into = &input.gamma,
                                   .range = zero_to_one,
                                   .required = true,
                                   .meaning = "factor of an epoch; the rate falls a little in each step"}),
      table.with({"linear"}, {.name = "start",
                              .into = &input.linear.start,
                              .range = zero_to_one,
                              .meaning = "factor of the learning rate at the start"}),
      table.with({"linear"}, {.name = "end",
                              .into = &input.linear.end,
                              .range = {.minimum = 0, .maximum = 1},
                              .meaning = "factor of the learning rate at the end"}),
      table.with({"polynomial"},
                 {.name = "power",
                  .into = &input.power,
                  .range = {.above = 0},
                  .meaning = "the rate is the peak times (1 - t) to this power, where t rises to 1"}),
      table.with({"cosine", "cosine_restarts", "cyclic"}, {.name = "floor",
                                                           .into = &input.floor,
                                                           .range = {.minimum = 0},
                                                           .meaning = "the lowest learning rate"}),
      table.with({"cosine_restarts"}, {.name = "first_epochs",
                                       .into = &input.first_epochs,
                                       .range = some_epochs,
                                       .required = true,
                                       .meaning = "epochs of the first cosine"}),
      table.with({"cosine_restarts"},
                 {.name = "growth",
                  .into = &input.growth,
                  .range = {.minimum = 1, .maximum = most_epochs},
                  .meaning = "each further cosine is this many times as long as the one before it"}),
      table.with({"cyclic"}, {.name = "up_epochs",
                              .into = &input.up_epochs,
                              .range = some_epochs,
                              .required = true,
                              .meaning = "epochs in which the rate rises from `floor` to the peak"}),
      table.with({"cyclic"},
                 {.name = "down_epochs",
                  .into = &input.down_epochs,
                  .range = some_epochs,
                  .meaning = "epochs in which it falls to `floor` again; as many as `up_epochs` by default"}),
      gamma_of_cycles,
      table.with({"one_cycle"}, {.name = "rising",
                                 .into = &input.one_cycle.rising,
                                 .range = {.minimum = 0, .maximum = 1},
                                 .meaning = "fraction of the schedule in which the rate rises"}),
      table.with({"one_cycle"}, {.name = "start_divisor",
                                 .into = &input.one_cycle.start_divisor,
                                 .range = {.minimum = 1},
                                 .meaning = "initial rate = peak / start_divisor"}),
      table.with({"one_cycle"}, {.name = "end_divisor",
                                 .into = &input.one_cycle.end_divisor,
                                 .range = {.minimum = 1},
                                 .meaning = "final rate = initial rate / end_divisor"}),
  };
}

std::vector<Key> plateau_keys(ScheduleInput& input, const ScheduleTable& table) {
  const std::vector<std::string> plateau{"plateau"};
  return {
      table.with(plateau,
                 {.name = "metric",
                  .into = &input.plateau.metric,
                  .meaning = "what is observed after each epoch: `loss`, the validation loss, or the name of "
                             "a metric of the validation, such as `accuracy`"}),
      table.with(plateau, {.name = "mode",
                           .into = &input.plateau_mode,
                           .words = {"min", "max"},
                           .meaning = "`max` if the metric should rise; the default follows from its name"}),
      table.with(plateau, {.name = "factor",
                           .into = &input.plateau.factor,
                           .range = {.above = 0, .below = 1},
                           .meaning = "factor of each reduction of the rate"}),
      table.with(plateau, {.name = "patience",
                           .into = &input.plateau.patience,
                           .range = {.minimum = 0, .maximum = most_epochs},
                           .meaning = "epochs in a row without improvement that do not yet reduce the rate"}),
      table.with(plateau,
                 {.name = "threshold",
                  .into = &input.plateau.threshold,
                  .range = {.minimum = 0, .below = 1},
                  .meaning = "a value below (1 - threshold) times the best one is an improvement; with "
                             "`mode: max` one above (1 + threshold) times the best one"}),
      table.with(plateau,
                 {.name = "cooldown",
                  .into = &input.plateau.cooldown,
                  .range = {.minimum = 0, .maximum = most_epochs},
                  .meaning = "epochs after a reduction that do not count as epochs without improvement"}),
      table.with(plateau, {.name = "min_lr",
                           .into = &input.plateau.min_lr,
                           .range = {.minimum = 0},
                           .meaning = "the rate is never reduced below this"}),
  };
}

// Returns the schedules that a part of a sequence may have, with their words.
std::vector<std::pair<std::string, ScheduleName>> part_names() {
  return {{"constant", ScheduleName::constant},     {"step", ScheduleName::step},
          {"multi_step", ScheduleName::multi_step}, {"exponential", ScheduleName::exponential},
          {"linear", ScheduleName::linear},         {"polynomial", ScheduleName::polynomial},
          {"cosine", ScheduleName::cosine},         {"cosine_restarts", ScheduleName::cosine_restarts},
          {"cyclic", ScheduleName::cyclic},         {"one_cycle", ScheduleName::one_cycle}};
}

void append_keys(std::vector<Key>& keys, std::vector<Key> more) {
  std::ranges::move(more, std::back_inserter(keys));
}

}  // namespace

std::vector<Key> schedule_keys(ScheduleInput& input, const TrainerOptions& trainer) {
  const ScheduleTable table{"schedule."};
  auto names = part_names();
  names.emplace_back("plateau", ScheduleName::plateau);
  names.emplace_back("sequence", ScheduleName::sequence);
  std::vector<Key> keys{
      table.named({.name = "name",
                   .into = one_of(input.name, std::move(names)),
                   .meaning = "[learning-rate schedule](schedules.md); `plateau` is the "
                              "[schedule that observes the validation](schedules.md#the-learning-rate-at-"
                              "a-plateau)"}),
      table.with({"constant", "step", "multi_step", "exponential", "polynomial", "cosine", "cosine_restarts",
                  "plateau"},
                 {.name = "warmup_epochs",
                  .into = &input.warmup_epochs,
                  .range = {.minimum = 0},
                  .most = [&trainer] { return static_cast<double>(trainer.epochs); },
                  .meaning = "length of a linear warm-up; at most `training.epochs`"}),
  };
  append_keys(keys, decay_keys(input, table));
  append_keys(keys, plateau_keys(input, table));
  keys.push_back(
      table.with({"sequence"}, {.name = "parts",
                                .into = &input.parts,
                                .required = true,
                                .meaning = "schedules one after the other: [a sequence](schedules.md)"}));
  return keys;
}

std::vector<Key> schedule_part_keys(ScheduleInput& part) {
  std::vector<Key> keys{
      {.name = "name", .into = one_of(part.name, part_names()), .required = true, .meaning = "the schedule"},
      {.name = "epochs",
       .into = &part.epochs,
       .range = some_epochs,
       .meaning = "length of the part; the last part needs none, and lasts until the end of the run"},
      {.name = "steps",
       .into = &part.steps,
       .range = {.minimum = 1, .maximum = 1e12},
       .meaning = "the length in steps, instead of `epochs`"},
      {.name = "rate",
       .into = &part.rate,
       .range = {.above = 0},
       .meaning = "factor of `training.optimizer.learning_rate`, for the peak of the part"},
  };
  append_keys(keys, decay_keys(part, {""}));
  return keys;
}

}  // namespace plexaura
