// How a Trainer trains where its strategy deals out the data: this rank without the others, until nothing is left.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "core/base/clock.h"
#include "core/base/events.h"
#include "training/data/loader.h"
#include "training/loop/signals.h"
#include "training/loop/step_runner.h"
#include "training/loop/trainer.h"

namespace plexaura {

// An epoch, or what is left of it. Where a rank dies meanwhile, what it has left behind, too.
void Trainer::train_dealt(Loader& loader, TrainingObserver& observer) {
  if (ranks().rank() != 0) state_.epoch_loss = state_.epoch_samples = 0;  // sums so far are rank 0's to bring
  const DealtSteps steps = steps_of_deal();
  deal_begin_ = state_.step_in_epoch;
  std::int64_t dealt = steps.first;
  do {
    programs_->step().take_weights_back();  // this rank may get no part
    dealt = train_drawn(loader, observer, steps);
    programs_->step().await_weights();
  } while (!exchange_.dealer->is_over());
  go_to(dealt);
  deal_begin_.reset();
  is_to_meet_ = true;
}

// Until nothing is left, or this rank fails. Gives the step behind the last one that was dealt.
std::int64_t Trainer::train_drawn(Loader& loader, TrainingObserver& observer, const DealtSteps& steps) {
  std::optional<std::int64_t> dealt;
  while (!failure_) {
    const double begin = seconds_now();
    if (noted_signal_ == 0) noted_signal_ = StopSignals::received();
    if (is_to_stop()) exchange_.dealer->stop();
    if (!dealt) dealt = draw_ahead(loader, steps);
    if (loader.is_empty()) return *dealt;
    failure_ = train_alone(loader, observer, begin);
  }
  // The run ends, and nobody has to train on what is left.
  exchange_.dealer->stop();
  while (true)
    if (const Draw drawn = exchange_.dealer->draw(steps); !drawn.part) return drawn.step_in_epoch;
}

// As many parts as the loader takes. The step behind the last one that was dealt, when nothing is left.
std::optional<std::int64_t> Trainer::draw_ahead(Loader& loader, const DealtSteps& steps) {
  while (loader.has_room()) {
    const Draw drawn = exchange_.dealer->draw(steps);
    if (!drawn.part) return drawn.step_in_epoch;
    loader.read_ahead(state_.epoch, drawn.step_in_epoch, *drawn.part);
  }
  return std::nullopt;
}

// Up to the end of the epoch, or of the run, or to the next checkpoint.
DealtSteps Trainer::steps_of_deal() const {
  const std::int64_t epoch_begin = state_.step - state_.step_in_epoch;
  std::int64_t end = train_plan_.steps_per_epoch();
  if (options_.steps) end = std::min(end, *options_.steps - epoch_begin);
  if (const auto every = options_.save_every)
    end = std::min(end, (state_.step / *every + 1) * *every - epoch_begin);
  const auto parts = [&](std::int64_t step) {
    return std::min(train_plan_.ranks, train_plan_.global_batch(step).count);
  };
  return {state_.step_in_epoch, end, parts(state_.step_in_epoch), parts(end - 1), state_.step};
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
void Trainer::meet() {
  const std::string what = fmt::format("the steps of epoch {}", state_.epoch + 1);
  agree_on_error(ranks(), failure_, what);
  std::array sums{state_.epoch_loss, state_.epoch_samples, is_to_stop() ? 1.0 : 0.0};
  ranks().sum(DType::float64, reinterpret_cast<std::byte*>(sums.data()), std::ssize(sums), what);
  state_.epoch_loss = sums[0];
  state_.epoch_samples = sums[1];
  stopped_ = sums[2] > 0;
  is_to_meet_ = false;
  end_epoch_where_due();
}

// Where each makes its own steps.
double Trainer::rate_of_all_ranks() {
  double rate = rates_.median();
  if (is_dealt())
    ranks().sum(DType::float64, reinterpret_cast<std::byte*>(&rate), 1, "the speed of all ranks");
  return rate;
}

}  // namespace plexaura
