// An Optimizer on several ranks.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "core/base/fnv.h"
#include "core/exchange/collective.h"
#include "training/optimizers/group_optimizers.h"
#include "training/programs/optimizer.h"
#include "training/programs/optimizer_parts.h"
#include "training/ranks/on_rank_0.h"
#include "training/ranks/store_hash.h"

namespace plexaura {

namespace {

void check_same_weights(Collective& ranks, const ParameterStore& store) {
  const std::string what = "the weights with which the ranks begin";
  const auto hashes = ranks.gather_all(fmt::format("{:016x}", weights_hash(store)), what);
  together(ranks, what, [&] {
    for (std::size_t rank = 1; rank < hashes.size(); ++rank)
      if (hashes[rank] != hashes[0])
        throw UserError(fmt::format(
            "rank {} begins with other weights than rank 0; make the stores of all ranks with one "
            "seed, or load the same weights",
            rank));
  });
}

// Returns a text that is equal for equal schedules: a hash of the learning rates of the first 100,000 steps, before and
// after a reduction, and the options of a plateau.
std::string text_of(const Schedule& schedule) {
  std::uint64_t rates = fnv_start;
  for (const std::int64_t reductions : {0, 1})
    for (std::int64_t step = 0; step < 100'000; ++step) {
      const double rate = schedule.learning_rate(step, {.reductions = reductions});
      rates = fnv(std::as_bytes(std::span(&rate, 1)), rates);
    }
  std::string text = fmt::format("{:016x} ", rates);
  if (const Plateau* plateau = schedule.plateau())
    text += fmt::format("plateau {} {} {} {}", plateau->patience, plateau->threshold, plateau->cooldown,
                        plateau->mode == Plateau::max);
  return text;
}

// Throws on all ranks if their options differ, by which their weights would become different.
void check_same_options(Collective& ranks, const OptimizerOptions& of, std::uint64_t plan_hash) {
  const std::pair<const char*, std::string> options[] = {
      {"optimizer or model", fmt::format("{:016x}", plan_hash)},
      {"learning_rate", text_of(of.learning_rate)},
      {"seed", std::to_string(of.seed)},
      {"watch", std::to_string(of.watch)}};
  for (const auto& [name, text] : options) {
    const std::string what = fmt::format("OptimizerOptions::{}", name);
    const auto all = ranks.gather_all(text, what);
    together(ranks, what, [&] {
      for (std::size_t rank = 1; rank < all.size(); ++rank)
        if (all[rank] != all[0])
          throw UserError(
              fmt::format("rank {} has another {} than rank 0; give the same on all ranks", rank, what));
    });
  }
}

}  // namespace

void Optimizer::check_ranks(std::span<const TrainedParts::Part> others) const {
  if (has_ranks() && options_.ranks == nullptr)
    throw UserError("OptimizerOptions has a strategy and no ranks; set ranks, to those of the strategy");
  if (!has_ranks() && ranks().size() > 1)
    throw UserError(
        fmt::format("OptimizerOptions has {} ranks and no strategy, without which each rank would train by "
                    "itself; set strategy, for one to make_strategy({{}}, ranks)",
                    ranks().size()));
  const bool is_beside_ranks =
      std::ranges::any_of(others, [](const TrainedParts::Part& other) { return other->has_ranks; });
  if (is_beside_ranks || (has_ranks() && !others.empty()))
    throw UserError(
        "the store has another Optimizer, and an Optimizer of several ranks must be the only one of its "
        "store; destroy the other one first");
  if (!has_ranks()) return;
  if (store_.types().scales_loss())
    throw UserError(
        "an Optimizer of several ranks cannot adapt the loss scale of float16; train in bfloat16, or with a "
        "Trainer");
  const StrategyParts& parts = strategy_.parts;
  if (parts.gradients == nullptr || parts.scope != GradientScope::global || parts.weights != nullptr ||
      parts.server != nullptr || parts.courier != nullptr || parts.dealer != nullptr)
    throw UserError(
        "an Optimizer needs a strategy that sums the gradients over all ranks before each update, and does "
        "nothing else, such as allreduce; use another strategy with a Trainer");
}

// All ranks use the placement of rank 0.
void Optimizer::place_on_ranks(Backend& backend, TrainedPart part) {
  const std::string what = "placing the parameters";
  std::string text;
  on_rank_0(ranks(), what, [&] { text = to_text(compile_gradients(shapes_.front(), nullptr)->placement); });
  text = ranks().gather_all(text, "the placement of the parameters")[0];
  const Placement placed = together(ranks(), what, [&] {
    return store_.complete(ordered_by_rule(parse_placement(text), options_.optimizer));
  });
  // Making the memory may call all ranks, so no rank may have failed before.
  std::unique_ptr<Memory> gradients;
  if (backend.info().host_memory)
    gradients = strategy_.parts.gradients->gradient_memory(placed.bytes(ArenaKind::gradient));
  together(ranks(), what, [&] {
    const std::int64_t states = part.states;
    part_ = store_.trained_parts().add(std::move(part), {});
    store_.place(placed, backend, [&](std::size_t) { return std::move(gradients); });
    store_.require_states(states);
    store_.reset_states();
  });
  check_same_weights(ranks(), store_);
  together(ranks(), "compiling", [&] { make_step(shapes_.front()); });
  check_same_options(ranks(), options_, shapes_.front().update->plan_hash());
  std::exception_ptr mistake;
  try {
    strategy_.strategy->begin(shapes_.front().step->border());
  } catch (const UserError&) {
    mistake = std::current_exception();
  }
  agree_on_error(ranks(), mistake, "the beginning of the strategy");
}

double Optimizer::step_on_ranks(std::span<const Feed> feeds) {
  const StepMetrics metrics = run_on_ranks(feeds, true);
  const std::int64_t number = steps() + 1;
  const bool is_sound = std::isfinite(metrics.loss) && !metrics.failed;
  if (!is_sound)
    together(ranks(), fmt::format("step {}", number), [&] { throw_diverged(number, metrics.loss); });
  part_->updates = number;
  store_.trained_parts().set_updates(store_.updates() + 1);
  metrics_ = metrics;
  return metrics.loss;
}

// If this rank has no batch, because its feeds are wrong, it takes part in the exchange. Throws on all ranks if one of them
// has failed.
StepMetrics Optimizer::run_on_ranks(std::span<const Feed> feeds, bool updates_weights) {
  std::exception_ptr failure;
  try {
    check_labels(shape_for(feeds).labels, feeds);
    ready_shape();
    if (!updates_weights) {
      pending_->check_not_limited();
      separate_step().keep_batches();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  TrainingStep& step = *shapes_.front().step;
  const std::int64_t first_sample = pending_->samples + ranks().rank() * longest_first_axis(feeds);
  const MicroBatchInputs batch[] = {{feeds, samples_of_loss, first_sample}};
  const StepTicket ticket = step.run({.micro_batches = batch,
                                      .global_samples = ranks().size(),
                                      .step = steps() + 1,
                                      .learning_rate = learning_rate(),
                                      .seed = options_.seed,
                                      .updates_weights = updates_weights,
                                      .failure = failure});
  step.await_exchange(ticket);
  StepMetrics metrics;
  std::exception_ptr mine;
  try {
    metrics = step.metrics(ticket);
  } catch (...) {
    mine = std::current_exception();
  }
  if (mine || metrics.failed || options_.watch)
    agree_on_error(ranks(), mine, fmt::format("step {}", steps() + 1));
  if (metrics.samples != ranks().size() && !metrics.failed)
    throw UserError(
        "the strategy does not sum the last bucket, which carries the loss and the counts, over all ranks");
  return metrics;
}

}  // namespace plexaura
