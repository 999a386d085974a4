// The parts of Optimizer::step() as separate calls.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "training/programs/optimizer.h"
#include "training/programs/optimizer_parts.h"

namespace plexaura {

namespace {

void check_limit(std::string_view call, double most) {
  if (!std::isfinite(most) || most <= 0)
    throw UserError(fmt::format("Optimizer::{}: the limit is {}; it must be a number above 0", call, most));
}

}  // namespace

// Returns the programs of the first shape for the present placement of the store.
SeparateStep& Optimizer::separate_step() {
  if (store_.types().scales_loss())
    throw UserError(
        "Optimizer::gradients: in float16 the loss has a scale that skips whole steps; use step(), or train "
        "in bfloat16");
  if (!shapes_.front().model.outputs.weight.is_empty())
    throw UserError(
        "Optimizer::gradients: the loss has a weight, by which only a whole step divides it; use step(), or "
        "give the mean as the loss");
  OptimizerShape& shape = ready_shape();
  if (!shape.separate) {
    if (has_ranks()) shape.step->add_gradient_program(samples_of_loss, shape.gradients, workspace_, &ranks());
    shape.separate = std::make_unique<SeparateStep>(
        shape.model.outputs, shape.outputs, store_, backend_.get(),
        buckets_of(store_.placement(), parameters_), options_.optimizer, ranks(), pending_, options_.watch);
  }
  return *shape.separate;
}

// Divides the sum of the gradients by the number of batches, and returns their step. Throws UserError if there are no
// gradients, or if their mean is not finite. `call` names the calling function in errors.
SeparateStep& Optimizer::pending_step(std::string_view call) {
  SeparateStep& step = separate_step();
  if (step.batches() == 0)
    throw UserError(fmt::format(
        "Optimizer::{}: there are no gradients, because gradients() was not called since the last update, "
        "they were dropped, or another Optimizer has placed the store anew; call gradients() first",
        call));
  if (!step.take_mean()) {
    step.drop();
    throw UserError(
        fmt::format("Optimizer::{}: the mean of the gradients is not finite, because their sum is too large; "
                    "they were dropped, and weights and state are as before; lower the learning rate or the "
                    "loss",
                    call));
  }
  return step;
}

void Optimizer::check_nothing_pending(std::string_view call) const {
  if (pending_->batches > 0)
    throw UserError(
        fmt::format("Optimizer::{}: the gradients of {} batches wait for update(); call it first, or "
                    "drop_gradients()",
                    call, pending_->batches));
}

// On several ranks the gradients of each batch are summed at once, so that the later calls compute the same on all ranks.
double Optimizer::gradients(std::span<const Feed> feeds) {
  const InUse use = use_of(store_, "Optimizer::gradients");
  if (!has_ranks()) {
    shape_for(feeds);
    separate_step();
    pending_->check_not_limited();
  }
  const std::int64_t number = steps() + 1;
  const auto run_alone = [&] {
    check_labels(shapes_.front().labels, feeds);
    separate_step().keep_batches();
    return separate_step().run(feeds, {.samples = 1,
                                       .step = static_cast<double>(number),
                                       .seed = options_.seed,
                                       .first_sample = pending_->samples});
  };
  try {
    const StepMetrics metrics = has_ranks() ? run_on_ranks(feeds, false) : run_alone();
    if (!separate_step().count_batch(metrics.loss, ranks().size() * longest_first_axis(feeds)))
      together(ranks(), fmt::format("step {}", number), [&] {
        throw_diverged(number, metrics.loss, ", and the gradients since the last update were dropped");
      });
    metrics_ = metrics;
    return metrics.loss;
  } catch (...) {
    *pending_ = {};  // the arena may hold a part of the gradients
    throw;
  }
}

double Optimizer::gradients(std::initializer_list<Feed> feeds) {
  return gradients(std::span(feeds.begin(), feeds.size()));
}

double Optimizer::clip_by_norm(double most) {
  const InUse use = use_of(store_, "Optimizer::clip_by_norm");
  check_limit("clip_by_norm", most);
  SeparateStep& step = pending_step("clip_by_norm");
  pending_->limits += fmt::format(", clip_by_norm({})", most);
  return step.limit_norm(most);
}

double Optimizer::clip_by_value(double most) {
  const InUse use = use_of(store_, "Optimizer::clip_by_value");
  check_limit("clip_by_value", most);
  SeparateStep& step = pending_step("clip_by_value");
  pending_->limits += fmt::format(", clip_by_value({})", most);
  return step.limit_values(most);
}

void Optimizer::update() {
  const InUse use = use_of(store_, "Optimizer::update");
  if (has_ranks()) pending_->check_same(ranks());
  SeparateStep& step = pending_step("update");
  const std::int64_t number = steps() + 1;
  step.update({.learning_rate = learning_rate(), .step = static_cast<double>(number), .seed = options_.seed});
  part_->updates = number;
  store_.trained_parts().set_updates(store_.updates() + 1);
}

void Optimizer::drop_gradients() {
  const InUse use = use_of(store_, "Optimizer::drop_gradients");
  *pending_ = {};
}

}  // namespace plexaura
