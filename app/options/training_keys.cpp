#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "app/data/data_options.h"
#include "app/options/byte_count.h"
#include "app/options/run_keys.h"
#include "models/config/rules.h"

namespace plexaura {

namespace {

Words tuning_words(Tuning& tuning) {
  return one_of(tuning, {{"cached", Tuning::cached}, {"measure", Tuning::measure}, {"off", Tuning::off}});
}

// If the environment variable PLEXAURA_TUNING is set, makes its value the default of training.tuning.
void preset_tuning(Tuning& tuning) {
  const char* preset = std::getenv("PLEXAURA_TUNING");
  if (preset == nullptr) return;
  const Words modes = tuning_words(tuning);
  const auto found = std::ranges::find(modes.words, preset);
  if (found == modes.words.end())
    throw UserError(fmt::format("the variable PLEXAURA_TUNING is '{}'; it must be {}", preset,
                                joined_with_or(modes.words)));
  modes.choose(static_cast<std::size_t>(found - modes.words.begin()));
}

std::vector<Key> goal_keys(TrainingInput& input) {
  const Need metric{.key = "goal.metric"};
  return {
      {.name = "goal.metric",
       .into = &input.goal_metric,
       .meaning =
           "compares epochs by the validation, and keeps the checkpoint of the [best one](#the-best-epoch): "
           "`loss`, or the name of a metric of the validation, such as `accuracy`"},
      {.name = "goal.mode",
       .into = &input.goal_mode,
       .words = {"min", "max"},
       .needs = metric,
       .meaning = "`max` if the metric should rise; the default follows from its name"},
      {.name = "goal.patience",
       .into = &input.patience,
       .range = {.minimum = 1, .maximum = most_epochs},
       .needs = metric,
       .meaning = "ends the run after this many epochs in a row that were not better than the best one"},
  };
}

}  // namespace

std::optional<std::int64_t> TrainingInput::samples_of_batch() const {
  if (batch_size.has_value() == batch_per_rank.has_value()) return std::nullopt;
  return batch_size ? *batch_size : *batch_per_rank * ranks;
}

std::int64_t TrainingInput::samples_of_step() const {
  const std::int64_t batch = samples_of_batch().value_or(largest_batch);
  return samples == 0 ? batch : std::min(batch, samples);
}

std::vector<Key> training_keys(TrainingInput& input, RunOptions& run) {
  TrainerOptions& trainer = run.trainer;
  std::vector<Key> keys{
      {.name = "batch_size",
       .into = &input.batch_size,
       .range = {.minimum = 1, .maximum = largest_batch},
       .meaning = "samples per step over all ranks; either this key or the next is required, not both"},
      {.name = "batch_per_rank",
       .into = &input.batch_per_rank,
       .range = {.minimum = 1, .maximum = static_cast<double>(largest_batch / input.ranks)},
       .meaning = "samples per step of each rank that trains"},
      {.name = "micro_batches",
       .into = &trainer.micro_batches,
       .range = {.minimum = 1},
       .most = [&input] { return static_cast<double>(input.samples_of_step()); },
       .meaning = "splits each rank's share of a step to save memory; at most the number of samples per "
                  "step"},
      {.name = "memory",
       .into = &input.memory,
       .rule = std::string(rule_of_bytes),
       .meaning =
           "the most that a step may need on each rank for parameters, gradients, the optimizer's state, "
           "intermediate values and inputs: `2 GB`, `500 MB`, `1.5 GiB`, or a number of bytes. [Values "
           "are computed again](../guide/measuring.md#a-limit-of-memory) instead of kept, with the same "
           "bits. `--resume` may change it"},
      {.name = "epochs",
       .into = &trainer.epochs,
       .range = {.minimum = 1, .maximum = most_epochs},
       .required = true,
       .meaning = "number of passes over the training samples"},
      {.name = "seed",
       .into = &trainer.seed,
       .range = {.minimum = 0},
       .meaning = "seed of weights, order of samples, augmentation and dropout"},
      {.name = "precision",
       .into = one_of(input.precision, {{"float32", {ArenaTypes::all(DType::float32)}},
                                        {"float64", {ArenaTypes::all(DType::float64)}},
                                        {"bfloat16", {ArenaTypes::mixed(DType::bfloat16)}},
                                        {"float16", {ArenaTypes::mixed(DType::float16)}},
                                        {"auto", {ArenaTypes::all(DType::float32), true}}}),
       .meaning =
           "`bfloat16` and `float16` are [mixed](#mixed-precision); `auto` times a step in `float32` and in "
           "`bfloat16`, and trains in [the faster one](#the-faster-precision)"},
      {.name = "freeze",
       .into = &run.freeze,
       .meaning = "patterns of the parameters that are not trained, as `--skip` has them: `['layer1.*']`; "
                  "each must fit a parameter, and not all may be frozen. With `--resume` a run may freeze "
                  "more, but not fewer if its optimizer keeps a state"},
      {.name = "watch",
       .into = &trainer.watch,
       .meaning = "checks the result of every instruction for NaN and Inf and names the first that produced "
                  "one, with `float16` also in a step that would be skipped; slow"},
      {.name = "strict",
       .into = &trainer.strict,
       .meaning =
           "an op for which the backend has no kernel is an error; off: the host computes such an op, and "
           "the run names it at its start"},
  };
  keys.push_back({.name = "ema",
                  .into = &trainer.optimizer.ema,
                  .range = {.above = 0, .below = 1},
                  .meaning =
                      "keeps [averages of the weights](#averages-of-the-weights) over updates, and is the "
                      "factor of the old average, such as 0.999. Validation and files of weights have "
                      "the averages. Only for strategies where all ranks update by the same sums"});
  for (Key& key : optimizer_keys(input, trainer.optimizer)) keys.push_back(std::move(key));
  keys.push_back({.name = "tuning",
                  .into = tuning_words(run.tuning),
                  .late_default = {.shown = "\"cached\"", .set = [&run] { preset_tuning(run.tuning); }},
                  .meaning = "[how kernels are chosen](#the-choice-of-kernels), and how [gradients "
                             "cross](distributed.md#buckets-and-algorithm-by-measurement); the variable "
                             "`PLEXAURA_TUNING` sets another default. That of rank 0 counts"});
  for (Key& key : schedule_keys(input.schedule, trainer)) keys.push_back(std::move(key));
  for (Key& key : goal_keys(input)) keys.push_back(std::move(key));
  return keys;
}

std::vector<Key> reading_keys(TrainerOptions& trainer) {
  return {
      {.name = "shuffle",
       .into = &trainer.shuffle,
       .meaning = "shuffles the training samples before each epoch; the order depends on `training.seed`"},
      {.name = "workers",
       .into = &trainer.workers,
       .range = {.minimum = 0, .maximum = 256},
       .meaning = "reader threads of each rank; 0 reads samples between the steps, as small samples of a CSV "
                  "file are in any case"},
      {.name = "prefetch",
       .into = &trainer.prefetch,
       .range = {.minimum = 1, .maximum = 1024},
       .meaning = "number of steps to read ahead"},
      on_error_key(trainer.on_error),
  };
}

std::vector<Key> output_keys(TrainerOptions& trainer) {
  return {
      {.name = "dir",
       .into = &trainer.output,
       .meaning = "folder for the checkpoints of one run; empty: none are written. `--resume` refuses a "
                  "checkpoint with another model, precision, optimizer, seed, scaling of the samples, set of "
                  "classes, table or split of the table, and within an epoch another order of the samples, "
                  "other batches or another number of samples. At the end of an epoch the size of batches "
                  "may change: the schedule of the learning rate continues from the same epoch"},
      {.name = "every",
       .into = &trainer.save_every,
       .range = {.minimum = 1},
       .meaning = "number of steps between two checkpoints, counted over the whole run, in addition to "
                  "those at the end of each epoch. With `async-server` and `downpour` all clients meet for "
                  "them; with `--serve` it counts pushes, and is 100 if it is not given. The time that "
                  "they take counts as that of steps"},
      {.name = "keep",
       .into = &trainer.keep,
       .range = {.minimum = 1},
       .meaning =
           "number of checkpoints to keep. With its first checkpoint, a run without `--resume` removes "
           "all of an earlier run in `output.dir` that have made more steps; those that have made "
           "fewer count as its own. If the newest of them has made fewer steps than this run is to "
           "make, the earlier run may have been stopped, so that it is an error to give neither "
           "`--resume`, to continue, nor `--replace`, to start anew"},
  };
}

}  // namespace plexaura
