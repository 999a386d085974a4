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
  if (has_ranks())
    throw UserError(
        "Optimizer::gradients: several ranks sum their gradients within a step; use step(), or a Trainer "
        "with micro_batches to add up several batches of each rank");
  OptimizerShape& shape = ready_shape();
  if (!shape.separate)
    shape.separate = std::make_unique<SeparateStep>(
        shape.model.outputs, shape.outputs, store_, backend_.get(),
        buckets_of(store_.placement(), parameters_), options_.optimizer, ranks(), pending_, options_.watch);
  return *shape.separate;
}

// Returns the step whose gradients are complete, with their mean. `call` is the function that needs them.
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

double Optimizer::gradients(std::span<const Feed> feeds) {
  const InUse use = use_of(store_, "Optimizer::gradients");
  shape_for(feeds);
  SeparateStep& step = separate_step();
  if (step.has_mean() && step.batches() > 0)
    throw UserError(
        "Optimizer::gradients: the gradients of this step were limited; add all batches before the limit, "
        "and call update() before those of the next step");
  const std::int64_t number = steps() + 1;
  SeparateStep::BatchResult result;
  try {
    check_labels(shapes_.front().labels, feeds);
    result = step.add_batch(feeds, {.samples = 1,
                                    .step = static_cast<double>(number),
                                    .seed = options_.seed,
                                    .first_sample = step.samples()});
  } catch (...) {
    step.drop();  // the arena may hold a part of the gradients
    throw;
  }
  if (!result.is_finite)
    throw_diverged(number, result.loss, ", and the gradients since the last update were dropped");
  metrics_ = StepMetrics{.loss = result.loss, .samples = 1};
  std::ranges::copy(result.metrics, metrics_->sums.begin());
  return result.loss;
}

double Optimizer::gradients(std::initializer_list<Feed> feeds) {
  return gradients(std::span(feeds.begin(), feeds.size()));
}

double Optimizer::clip_by_norm(double most) {
  const InUse use = use_of(store_, "Optimizer::clip_by_norm");
  check_limit("clip_by_norm", most);
  return pending_step("clip_by_norm").limit_norm(most);
}

double Optimizer::clip_by_value(double most) {
  const InUse use = use_of(store_, "Optimizer::clip_by_value");
  check_limit("clip_by_value", most);
  return pending_step("clip_by_value").limit_values(most);
}

void Optimizer::update() {
  const InUse use = use_of(store_, "Optimizer::update");
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
