#include "training/loop/regroup.h"

#include <utility>

#include "training/loop/strategy_history.h"
#include "training/ranks/catch_up.h"

namespace plexaura {

namespace {

void stand_together(Run& run) {
  Progress& progress = run.progress;
  RunState& state = progress.state;
  const RunPlace mine{.step = state.step,
                      .first_step = progress.first_step,
                      .epoch = state.epoch,
                      .step_in_epoch = state.step_in_epoch,
                      .epoch_loss = state.epoch_loss,
                      .epoch_samples = state.epoch_samples,
                      .epoch_ended = progress.epoch_ended,
                      .is_to_meet = progress.is_to_meet,
                      .saved = progress.saved,
                      .keeps_own = run.history.own_state.has_value()};
  const RunPlace place = catch_up(run.ranks(), mine, run.store, run.strategy().parts.realigns_weights);
  state.step = place.step;
  progress.first_step = place.first_step;
  state.epoch = place.epoch;
  state.step_in_epoch = place.step_in_epoch;
  if (!place.is_to_meet) {  // before the ranks meet, each rank has its own sums
    state.epoch_loss = place.epoch_loss;
    state.epoch_samples = place.epoch_samples;
  }
  progress.epoch_ended = place.epoch_ended;
  progress.is_to_meet = place.is_to_meet;
  progress.saved = place.saved;
  if (!place.keeps_own) run.history.own_state.reset();
}

}  // namespace

void regroup(Run& run, Collective& ranks, Strategy* strategy, const std::optional<TakenParts>& taken) {
  check_outlives_ranks(run);
  run.parts.collective = &ranks;
  const StrategyInUse next(strategy);
  keep_own_state(run, next);
  drop_programs(run);
  Progress& progress = run.progress;
  if (progress.deal_begin) {
    progress.go_to(*std::exchange(progress.deal_begin, std::nullopt));
    // No checkpoint of that step can be written now, because the weights have changed since.
    progress.saved = true;
  }
  progress.state.strategy.clear();  // left over from a checkpoint that was not finished
  progress.stopped = false;
  run.stop.look_for_signal();
  run.division.taken = taken;
  share_out(run, next);
  run.folder.lock(ranks);
  make_programs(run, next);
  try {
    stand_together(run);
  } catch (...) {
    drop_programs(run);  // so that no rank continues from a place of its own
    throw;
  }
}

void step_aside(Run& run) {
  drop_programs(run);
  run.folder.unlock();
}

}  // namespace plexaura
