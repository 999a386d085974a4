#include "training/loop/regroup.h"

#include <utility>

#include "training/loop/strategy_history.h"

namespace plexaura {

namespace {

void stand_together(Run& run) {
  RunPlace mine = run.progress.place;
  mine.keeps_own = run.history.own_state.has_value();
  RunPlace place = catch_up(run.ranks(), mine, run.store, run.strategy().parts.realigns_weights);
  if (place.is_to_meet) {  // before the ranks meet, each rank has its own sums
    place.epoch_loss = mine.epoch_loss;
    place.epoch_samples = mine.epoch_samples;
  }
  run.progress.place = place;
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
    progress.place.saved = true;
  }
  run.history.saved.clear();  // the former strategy may not have taken it
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
