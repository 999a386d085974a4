// How a Trainer saves within an epoch, and goes on: from a checkpoint, with fewer ranks, or with a rank that holds wrong bits.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "training/files/folder_lock.h"
#include "training/loop/signals.h"
#include "training/loop/step_runner.h"
#include "training/loop/trainer.h"
#include "training/ranks/catch_up.h"
#include "training/ranks/verify_ranks.h"

namespace plexaura {

bool Trainer::resume() {
  const auto state =
      load_checkpoint(options_.output, parts_.store, state_.optimizer, state_.settings, ranks().rank());
  if (!state) return false;
  if (state->seed != options_.seed)
    throw UserError(fmt::format(
        "the checkpoint in {} was made with seed {} and training.seed is {}; resume with the same seed",
        options_.output.string(), state->seed, options_.seed));
  if (state->data_origin != options_.data_origin && state->data_origin != options_.older_data_origin)
    throw UserError(
        fmt::format("the checkpoint in {} was made with other data, classes or split, and what is held out "
                    "now may be what "
                    "it was trained on; resume with the same, or start from its weights with --weights",
                    options_.output.string()));
  if (state->step_in_epoch != 0 &&
      (state->samples != state_.samples || state->batch_size != state_.batch_size))
    throw UserError(fmt::format(
        "the checkpoint in {} was made within an epoch of {} samples in batches of {} and now there are {} "
        "in batches of {}; "
        "resume with the same data and batches",
        options_.output.string(), state->samples, state->batch_size, state_.samples, state_.batch_size));
  if (state->step_in_epoch != 0 && state->shuffle && *state->shuffle != options_.shuffle)
    throw UserError(
        fmt::format("the checkpoint in {} was made within an epoch with data.shuffle {} and now it is {}, so "
                    "that samples "
                    "would come twice or not at all; resume with the same",
                    options_.output.string(), *state->shuffle, options_.shuffle));
  if (const std::int64_t begun = state->epoch + (state->step_in_epoch > 0 ? 1 : 0); begun > options_.epochs)
    throw UserError(
        fmt::format("the checkpoint in {} is of epoch {} and training.epochs is {}; set it to {} or more",
                    options_.output.string(), begun, options_.epochs, begun));
  has_other_kernels_ = !state->kernels.empty() && state->kernels != state_.kernels;
  has_other_buckets_ =
      has_other_kernels_ && !state->bucket_bytes.empty() && state->bucket_bytes != state_.bucket_bytes;
  const RunState now = std::exchange(state_, *state);
  state_.data_origin = now.data_origin;
  state_.notes = now.notes;
  state_.shuffle = now.shuffle;
  state_.samples = now.samples;
  state_.batch_size = now.batch_size;
  state_.kernels = now.kernels;
  state_.kernel_times = now.kernel_times;
  state_.bucket_bytes = now.bucket_bytes;
  state_.compression = now.compression;
  first_step_ = state_.step;
  saved_ = true;
  return true;
}

// Behind every so many steps, counted over the run, so that one that goes on saves behind the same; and at the end of an epoch, where a rank was lost when all were about to save it.
bool Trainer::is_save_due() const {
  if (saved_ || state_.step == first_step_) return false;
  return state_.step_in_epoch == 0 || is_to_be_saved(state_.step);
}

bool Trainer::is_to_be_saved(std::int64_t step) const {
  return options_.save_every && step % *options_.save_every == 0;
}

void Trainer::save_now(TrainingObserver& observer) {
  note_step_under_way(observer);
  check_reported();
  save();
}

void Trainer::give_strategy_state() {
  const SavedStrategy saved = std::exchange(state_.strategy, {});
  if (own_state_) return settle_strategy();
  // Ranks that train for themselves go on with what they had where more begin than there were, too.
  const bool have_own = state_.strategy_ranks == ranks().size() ||
                        (trains_for_itself() && state_.strategy_ranks < ranks().size());
  if (have_own && trains_for_itself())
    together(ranks(), "the weights of each rank",
             [&] { take_own_store(saved, ranks().rank(), parts_.store); });
  if (!saved.empty() && exchange_.state != nullptr)
    exchange_.state->take_state(strategy_state_of(saved, ranks().rank(), have_own));
  has_begun_ = true;
}

void Trainer::settle_strategy() {
  programs_->step().border().begin_step(
      {.number = state_.step, .epoch = state_.epoch - (epoch_ended_ ? 1 : 0), .ends_epoch = epoch_ended_},
      false);
  std::vector<StrategyState> own = *std::exchange(own_state_, std::nullopt);
  if (exchange_.state != nullptr) exchange_.state->take_state(std::move(own));
  has_begun_ = true;  // if ranks are lost from here on, it is this strategy that knows
  if (exchange_.state != nullptr) exchange_.state->settle();
}

void Trainer::regroup(Collective& collective, Strategy* strategy, std::optional<TakenParts> taken) {
  if (exchange_.courier != nullptr)
    throw UserError(
        "with this strategy rank 0 alone reads the data, and the ranks that are left may have none; go on "
        "from "
        "a checkpoint");
  parts_.collective = &collective;
  const KeptState* const former = exchange_.state;
  take_strategy(strategy);
  keep_own_state(former);
  drop_programs();
  under_way_.reset();  // its record is lost with the program that holds it
  unnoted_.clear();
  if (deal_begin_) {
    go_to(*std::exchange(deal_begin_, std::nullopt));
    saved_ = true;  // as it stood there, which the weights do not any more
  }
  state_.strategy.clear();  // that of a checkpoint which was not finished
  stopped_ = false;
  if (noted_signal_ == 0) noted_signal_ = StopSignals::received();
  taken_ = taken;
  ran_ = false;
  share_out();
  lock_output();
  make_programs();
  try {
    stand_together();
  } catch (...) {
    drop_programs();  // nobody trains on from a place of his own
    throw;
  }
}

void Trainer::step_aside() {
  drop_programs();
  under_way_.reset();
  unnoted_.clear();
  output_lock_.reset();
  take_strategy(nullptr);
}

// Before its border is gone. A strategy that has not begun knows nothing yet.
void Trainer::keep_own_state(const KeptState* former) {
  const bool had_begun = std::exchange(has_begun_, false);
  if (!trains_for_itself()) return own_state_.reset();
  together(ranks(), "the state of the strategy", [&] {
    if (had_begun) own_state_ = state_of_strategy(former);
  });
}

// All compute the same update with the same kernels. What a strategy shows instead of the weights is not compared.
bool Trainer::ranks_stay_equal() {
  if (ranks().size() == 1 || exchange_.realigns_weights || trains_for_itself() || exchange_.shows_weights)
    return false;
  const auto kernels =
      ranks().gather_all(fmt::format("{:016x}", programs_->kernels_hash()), "the kernels of all ranks");
  return std::ranges::all_of(kernels, [&](const std::string& theirs) { return theirs == kernels[0]; });
}

void Trainer::verify() {
  if (!verifies_) return;
  programs_->step().await_weights();
  verify_ranks(ranks(), parts_.store, state_.step, number());
}

void Trainer::drop_programs() {
  runner_.reset();
  programs_.reset();
}

void Trainer::stand_together() {
  const RunPlace place = catch_up(ranks(),
                                  {.step = state_.step,
                                   .first_step = first_step_,
                                   .epoch = state_.epoch,
                                   .step_in_epoch = state_.step_in_epoch,
                                   .epoch_loss = state_.epoch_loss,
                                   .epoch_samples = state_.epoch_samples,
                                   .epoch_ended = epoch_ended_,
                                   .is_to_meet = is_to_meet_,
                                   .saved = saved_,
                                   .keeps_own = own_state_.has_value()},
                                  parts_.store, exchange_.realigns_weights);
  state_.step = place.step;
  first_step_ = place.first_step;
  state_.epoch = place.epoch;
  state_.step_in_epoch = place.step_in_epoch;
  if (!place.is_to_meet) {  // until then sums are each rank's own
    state_.epoch_loss = place.epoch_loss;
    state_.epoch_samples = place.epoch_samples;
  }
  epoch_ended_ = place.epoch_ended;
  is_to_meet_ = place.is_to_meet;
  saved_ = place.saved;
  if (!place.keeps_own) own_state_.reset();
}

}  // namespace plexaura
