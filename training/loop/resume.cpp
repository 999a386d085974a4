#include "training/loop/resume.h"

#include <fmt/format.h>

namespace plexaura {

namespace {

void check_goes_on(const RunState& saved, const RunState& now, const TrainerOptions& options) {
  if (saved.seed != options.seed)
    throw UserError(fmt::format(
        "the checkpoint in {} was made with seed {} and training.seed is {}; resume with the same seed",
        options.output.string(), saved.seed, options.seed));
  if (saved.data_origin != options.data_origin && saved.data_origin != options.older_data_origin)
    throw UserError(
        fmt::format("the checkpoint in {} was made with other data, classes or split, and what is held out "
                    "now may be what "
                    "it was trained on; resume with the same, or start from its weights with --weights",
                    options.output.string()));
  if (saved.step_in_epoch != 0 && (saved.samples != now.samples || saved.batch_size != now.batch_size))
    throw UserError(fmt::format(
        "the checkpoint in {} was made within an epoch of {} samples in batches of {} and now there are {} "
        "in batches of {}; "
        "resume with the same data and batches",
        options.output.string(), saved.samples, saved.batch_size, now.samples, now.batch_size));
  if (saved.step_in_epoch != 0 && saved.shuffle && *saved.shuffle != options.shuffle)
    throw UserError(
        fmt::format("the checkpoint in {} was made within an epoch with data.shuffle {} and now it is {}, so "
                    "that samples "
                    "would come twice or not at all; resume with the same",
                    options.output.string(), *saved.shuffle, options.shuffle));
  if (const std::int64_t begun = saved.epoch + (saved.step_in_epoch > 0 ? 1 : 0); begun > options.epochs)
    throw UserError(
        fmt::format("the checkpoint in {} is of epoch {} and training.epochs is {}; set it to {} or more",
                    options.output.string(), begun, options.epochs, begun));
}

}  // namespace

std::optional<RunState> resume(Run& run) {
  const RunState now = state_of(run);
  const TrainerOptions& options = run.options;
  const auto saved =
      load_checkpoint(options.output, run.store, now.optimizer, now.settings, run.ranks().rank());
  if (!saved) return std::nullopt;
  check_goes_on(*saved, now, options);
  run.history.saved = saved->strategy;
  run.history.saved_ranks = saved->strategy_ranks;
  run.progress.place = {.step = saved->step,
                        .first_step = saved->step,
                        .epoch = saved->epoch,
                        .step_in_epoch = saved->step_in_epoch,
                        .epoch_loss = saved->epoch_loss,
                        .epoch_samples = saved->epoch_samples,
                        .saved = true};
  return saved;
}

}  // namespace plexaura
