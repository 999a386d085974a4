#include "training/loop/continue_run.h"

#include <fmt/format.h>
#include <utility>

#include "training/loop/strategy_history.h"
#include "training/optimizers/averaged_weights.h"

namespace plexaura {

namespace {

std::string streams_text(const RunState& state) {
  const std::size_t count = state.streamed.size();
  return count == 0   ? "data that is no stream"
         : count == 1 ? "one stream"
                      : fmt::format("{} streams, one of each rank", count);
}

void check_resumes_run(const RunState& saved, const RunState& now, const TrainerOptions& options) {
  if (saved.seed != options.seed)
    throw UserError(fmt::format(
        "the checkpoint in {} was made with seed {} and training.seed is {}; resume with the same seed",
        options.output.string(), saved.seed, options.seed));
  if (saved.data_origin != options.data_origin && saved.data_origin != options.older_data_origin)
    throw UserError(
        fmt::format("the checkpoint in {} was made with other data, classes or split, or with another "
                    "data.sampling, and what is held out now may be what it was trained on; resume with the "
                    "same, or start from its weights with --weights",
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
                    "that samples would come twice or not at all; resume with the same",
                    options.output.string(), *saved.shuffle, options.shuffle));
  if (saved.streamed.size() != now.streamed.size())
    throw UserError(
        fmt::format("the checkpoint in {} was made with {} and now there is {}; resume with the same, or "
                    "start from its weights with --weights",
                    options.output.string(), streams_text(saved), streams_text(now)));
  if (const std::int64_t begun = saved.epoch + (saved.step_in_epoch > 0 ? 1 : 0); begun > options.epochs)
    throw UserError(
        fmt::format("the checkpoint in {} is of epoch {} and training.epochs is {}; set it to {} or more",
                    options.output.string(), begun, options.epochs, begun));
}

void agree_on_place(Run& run) {
  RunPlace mine = run.progress.place;
  mine.keeps_own = run.history.own_state.has_value();
  RunPlace place = catch_up(run.ranks(), mine, run.store, run.strategy().parts.realigns_weights);
  if (place.is_to_meet) {  // before the ranks meet, each rank has its own sums of losses
    place.epoch_loss = mine.epoch_loss;
    place.epoch_samples = mine.epoch_samples;
  }
  run.progress.place = place;
  if (!place.keeps_own) run.history.own_state.reset();
}

}  // namespace

std::optional<RunState> resume(Run& run) {
  const RunState now = state_of(run);
  const TrainerOptions& options = run.options;
  const auto saved =
      load_checkpoint(options.output, run.store, now.optimizer, now.settings, run.ranks().rank());
  if (!saved) return std::nullopt;
  check_resumes_run(*saved, now, options);
  // The file of weights holds the averages: see save() in epochs.cpp.
  exchange_averages(run.store, options.optimizer);
  // A run without a goal keeps the best checkpoint of the run that it continues.
  const bool keeps_best = !options.goal || saved->goal == run.progress.goal_name;
  if (keeps_best) run.progress.goal_name = saved->goal;
  run.history.saved = saved->strategy;
  run.history.saved_ranks = saved->strategy_ranks;
  run.progress.place = {.step = saved->step,
                        .first_step = saved->step,
                        .epoch = saved->epoch,
                        .step_in_epoch = saved->step_in_epoch,
                        .epoch_loss = saved->epoch_loss,
                        .epoch_samples = saved->epoch_samples,
                        .plateau = saved->plateau_metric == now.plateau_metric
                                       ? saved->plateau.value_or(PlateauState{})
                                       : PlateauState{},
                        .best = keeps_best ? saved->best : BestEpoch{},
                        .saved = true};
  run.progress.streamed = saved->streamed;
  return saved;
}

void regroup(Run& run, Collective& ranks, Strategy* strategy, const std::optional<TakenParts>& taken) {
  check_outlives_ranks(run);
  run.parts.collective = &ranks;
  const StrategyInUse next(strategy);
  keep_own_state(run, next);
  drop_programs(run);
  Progress& progress = run.progress;
  if (progress.deal_begin) {
    progress.go_to(*std::exchange(progress.deal_begin, std::nullopt));
    // No checkpoint of the present step can be written now, because the weights have changed since.
    progress.place.saved = true;
  }
  run.history.saved.clear();  // the former strategy may not have taken its saved state
  progress.stopped = false;
  run.stop.look_for_signal();
  run.division.taken = taken;
  share_out(run, next);
  run.folder.lock(ranks);
  make_programs(run, next);
  try {
    agree_on_place(run);
  } catch (...) {
    drop_programs(run);  // drops the programs, so that no rank continues from a place of its own
    throw;
  }
}

void step_aside(Run& run) {
  drop_programs(run);
  run.folder.unlock();
}

}  // namespace plexaura
