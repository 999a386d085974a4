// How a Trainer trains where its strategy deals out the data: this rank without the others, until nothing is left.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/clock.h"
#include "core/events.h"
#include "training/data/loader.h"
#include "training/signals.h"
#include "training/step_runner.h"
#include "training/trainer.h"

namespace plexaura {

Dealer* Trainer::dealer() const { return parts_.strategy != nullptr ? parts_.strategy->dealer() : nullptr; }

// An epoch, or what is left of it.
void Trainer::train_dealt(Loader& loader, TrainingObserver& observer) {
  if (ranks().rank() != 0) state_.epoch_loss = state_.epoch_samples = 0;  // sums so far are rank 0's to bring
  programs_->step().take_weights_back();                                  // this rank may get no part
  const std::int64_t first = state_.step_in_epoch;
  std::optional<std::int64_t> dealt;
  std::exception_ptr failure;
  while (!failure) {
    const double begin = seconds_now();
    if (noted_signal_ == 0) noted_signal_ = StopSignals::received();
    if (is_to_stop()) dealer()->stop();
    if (!dealt) dealt = draw_ahead(loader, first);
    if (loader.is_empty()) break;
    failure = train_alone(loader, observer, begin);
  }
  if (failure) dealer()->stop();
  meet(std::move(failure), dealt.value_or(first));
}

// As many parts as the loader takes. The step behind the last one that was dealt, when nothing is left.
std::optional<std::int64_t> Trainer::draw_ahead(Loader& loader, std::int64_t first) {
  while (loader.has_room()) {
    const Draw drawn = dealer()->draw(first, end_of_deal());
    if (!drawn.part) return drawn.step_in_epoch;
    const bool is_empty = train_plan_.rank_share(drawn.step_in_epoch, *drawn.part).count == 0;
    if (!is_empty) loader.read_ahead(state_.epoch, drawn.step_in_epoch, *drawn.part);
  }
  return std::nullopt;
}

// That of the epoch, or of the run.
std::int64_t Trainer::end_of_deal() const {
  const std::int64_t epoch_begin = state_.step - state_.step_in_epoch;
  const std::int64_t steps = train_plan_.steps_per_epoch();
  return options_.steps ? std::min(steps, *options_.steps - epoch_begin) : steps;
}

// One step. Gives this rank's own failure; what fails between the ranks is thrown.
std::exception_ptr Trainer::train_alone(Loader& loader, TrainingObserver& observer, double begin) {
  Step data;
  try {
    data = next_step(loader);
  } catch (...) {
    return std::current_exception();
  }
  go_to(data.step_in_epoch);
  tell_event(EventKind::step, state_.step + 1);
  under_way_ = launch(data, nullptr, begin);
  try {
    note_step_under_way(observer);
  } catch (...) {
    return std::current_exception();
  }
  return std::exchange(report_failure_, nullptr);
}

// Of all ranks: all that was dealt has been trained on, and they go on from the same place with the same weights.
void Trainer::meet(std::exception_ptr failure, std::int64_t dealt) {
  programs_->step().await_weights();
  const std::string what = fmt::format("the steps of epoch {}", state_.epoch + 1);
  agree_on_error(ranks(), failure, what);
  std::array sums{state_.epoch_loss, state_.epoch_samples, is_to_stop() ? 1.0 : 0.0};
  ranks().sum(DType::float64, reinterpret_cast<std::byte*>(sums.data()), std::ssize(sums), what);
  state_.epoch_loss = sums[0];
  state_.epoch_samples = sums[1];
  stopped_ = sums[2] > 0;
  go_to(dealt);
  end_epoch_where_due();
}

// Where each makes its own steps.
double Trainer::rate_of_all_ranks() {
  double rate = rates_.median();
  if (dealer() != nullptr)
    ranks().sum(DType::float64, reinterpret_cast<std::byte*>(&rate), 1, "the speed of all ranks");
  return rate;
}

}  // namespace plexaura
