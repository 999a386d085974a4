#include "training/loop/strategy_history.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "training/ranks/report_buckets.h"

namespace plexaura {

namespace {

// True if each rank has weights and an optimizer state of its own.
bool keeps_own(const StrategyInUse& strategy) { return strategy.parts.scope == GradientScope::local; }

void complete_exchange_of_strategy(Run& run) {
  const RunPlace& place = run.progress.place;
  run.programs->step().border().begin_step({.number = place.step,
                                            .epoch = place.epoch - (place.epoch_ended ? 1 : 0),
                                            .ends_epoch = place.epoch_ended},
                                           false);
  std::vector<StrategyState> own = *std::exchange(run.history.own_state, std::nullopt);
  KeptState* const state = run.strategy().parts.state;
  if (state != nullptr) state->take_state(std::move(own));
  run.history.has_begun = true;  // if ranks are lost from now on, the state is taken from this strategy
  if (state != nullptr) state->complete_exchange();
}

}  // namespace

// Begins the strategy. The strategy may call all ranks, so no rank may have failed before.
void begin_strategy(Run& run) {
  Strategy* const strategy = run.strategy().strategy;
  if (strategy == nullptr) return;
  report_buckets(run.programs->step().border());
  // An error about the strategy, usually the same on all ranks; only one of them prints it.
  std::exception_ptr mistake;
  try {
    strategy->begin(run.programs->step().border());
  } catch (const UserError&) {
    mistake = std::current_exception();
  }
  agree_on_error(run.ranks(), mistake, "the beginning of the strategy");
}

void give_strategy_state(Run& run) {
  const SavedStrategy saved = std::exchange(run.history.saved, {});
  if (run.history.own_state) return complete_exchange_of_strategy(run);
  const int rank = run.ranks().rank();
  const int size = run.ranks().size();
  const bool trains_own = keeps_own(run.strategy());
  // With local scope, ranks also take their own state if there are more ranks than before.
  const int before = run.history.saved_ranks;
  const bool have_own = before == size || (trains_own && before < size);
  if (have_own && trains_own)
    together(run.ranks(), "the weights of each rank", [&] { take_own_store(saved, rank, run.store); });
  restore_strategy_state(saved, rank, have_own, run.strategy().parts.state);
  run.history.has_begun = true;
}

SavedStrategy gather_state_of_strategy(Run& run) {
  const StrategyInUse& strategy = run.strategy();
  if (strategy.strategy == nullptr) return {};
  return gather_strategy_state(run.ranks(), strategy.parts.state, keeps_own(strategy) ? &run.store : nullptr);
}

// Keeps the state of the former strategy. A strategy that has not begun has no state to keep.
void keep_own_state(Run& run, const StrategyInUse& next) {
  const bool had_begun = std::exchange(run.history.has_begun, false);
  if (!keeps_own(next)) return run.history.own_state.reset();
  together(run.ranks(), "the state of the strategy", [&] {
    if (!had_begun) return;
    const KeptState* const former = run.programs ? run.strategy().parts.state : nullptr;
    run.history.own_state = state_of_strategy(former);
  });
}

void check_outlives_ranks(const Run& run) {
  if (run.parts.stream)
    throw UserError(
        "the run reads a stream, of which the lost ranks have used samples that are not trained on; continue "
        "from a checkpoint");
  if (run.programs && run.strategy().parts.courier != nullptr)
    throw UserError(
        "with this strategy rank 0 alone reads the data, and the ranks that are left may have none; continue "
        "from a checkpoint");
}

bool ranks_stay_equal(const Run& run) {
  const StrategyParts& parts = run.strategy().parts;
  if (run.ranks().size() == 1 || parts.realigns_weights || keeps_own(run.strategy()) || parts.shows_weights)
    return false;
  const auto kernels = run.ranks().gather_all(fmt::format("{:016x}", run.programs->kernels_hash()),
                                              "the kernels of all ranks");
  return std::ranges::all_of(kernels, [&](const std::string& theirs) { return theirs == kernels[0]; });
}

}  // namespace plexaura
