#include "training/programs/optimizer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/exchange/collective.h"
#include "core/vm/watch.h"
#include "training/checkpoints/checkpoint.h"
#include "training/files/records.h"
#include "training/optimizers/group_optimizers.h"
#include "training/programs/first_loss_scale.h"
#include "training/programs/optimizer_parts.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

// The collective of a single rank: a sum over all ranks is this rank's own value.
Collective& the_only_rank() {
  static SingleProcess rank;
  return rank;
}

// Returns the specs of the store, of which only the parameters `trained` are trainable.
std::vector<ParameterSpec> specs_with(const std::set<std::string>& trained, const ParameterStore& store) {
  std::vector<ParameterSpec> specs = store.specs();
  for (ParameterSpec& spec : specs)
    if (spec.role == ParameterRole::trainable && !trained.contains(spec.name))
      spec.role = ParameterRole::frozen;
  return specs;
}

// Returns the name by which checkpoints know an Optimizer with these options.
std::string name_of(const OptimizerOptions& options) {
  std::string name = optimizer_name(options.optimizer);
  if (!options.parameters.empty()) name += fmt::format(" of {}", fmt::join(options.parameters, ", "));
  return name;
}

}  // namespace

Optimizer::Optimizer(const LossOutputs& outputs, ParameterStore& store, Backend& backend,
                     const OptimizerOptions& options)
    : options_(options), backend_(backend), store_(store.share()), strategy_(options.strategy) {
  const InUse use = use_of(store, "Optimizer");
  begin(backend, [&] {
    check_loss_is_given(outputs);
    return prepared(outputs, {});
  });
}

Optimizer::Optimizer(ModelBuilder model, std::span<const Feed> batch, ParameterStore& store, Backend& backend,
                     const OptimizerOptions& options)
    : options_(options),
      backend_(backend),
      store_(store.share()),
      strategy_(options.strategy),
      build_(std::move(model)) {
  const InUse use = use_of(store, "Optimizer");
  begin(backend, [&] {
    if (!build_) throw UserError("the Optimizer has no model; give it the function that builds the loss");
    if (options_.kept_shapes < 1)
      throw UserError(
          fmt::format("OptimizerOptions::kept_shapes is {}; an Optimizer keeps the programs of one shape at "
                      "least",
                      options_.kept_shapes));
    return built_for(batch);
  });
}

Optimizer::Optimizer(ModelBuilder model, std::initializer_list<Feed> batch, ParameterStore& store,
                     Backend& backend, const OptimizerOptions& options)
    : Optimizer(std::move(model), std::span(batch.begin(), batch.size()), store, backend, options) {}

// A mistake on one rank ends this call on all ranks, because the other ranks would wait for that rank.
void Optimizer::begin(Backend& backend, const std::function<OptimizerShape()>& make_shape) {
  place(backend, together(ranks(), "the options of an Optimizer", [&] { return take_part(make_shape); }));
}

// Takes the parameters to train, and makes the first shape.
PartBesideOthers Optimizer::take_part(const std::function<OptimizerShape()>& make_shape) {
  check_trains(store_);
  if (options_.optimizer.ema)
    throw UserError(
        "OptimizerSpec::ema is for a Trainer, which validates and saves the averages; leave it out for an "
        "Optimizer");
  parameters_ = trained_parameters(store_, options_.parameters);
  TrainedPart part{.name = name_of(options_),
                   .parameters = parameters_,
                   .seed = options_.seed,
                   .states = state_count(options_.optimizer),
                   .has_ranks = has_ranks()};
  options_.optimizer.groups = groups_by_name(options_.optimizer.groups, specs_with(parameters_, store_));
  const auto others = store_.trained_parts().beside(parameters_, trained_parameters(store_, {}));
  check_ranks(others);
  if (!others.empty() && store_.types().scales_loss())
    throw UserError(fmt::format(
        "the store has an Optimizer, {}, and a loss scale, which only one Optimizer can adapt; train "
        "in bfloat16, or with a store for each",
        others.front()->name));
  for (const TrainedParts::Part& other : others)
    if (other->seed != options_.seed)
      throw UserError(fmt::format(
          "another Optimizer of this store, {}, has the seed {} and OptimizerOptions::seed is {}; give all "
          "Optimizers of a store one seed, which its checkpoint holds",
          other->name, other->seed, options_.seed));
  shapes_.push_back(make_shape());
  return {std::move(part), others};
}

Collective& Optimizer::ranks() const { return options_.ranks != nullptr ? *options_.ranks : the_only_rank(); }

// Places the store for this Optimizer and the other Optimizers of the store, whose state is kept.
void Optimizer::place(Backend& backend, PartBesideOthers placed) {
  auto& [part, others] = placed;
  if (has_ranks()) return place_on_ranks(backend, std::move(part));
  OptimizerShape& shape = shapes_.front();
  shape.gradients = compile_gradients(shape, nullptr);
  const Placement own = ordered_by_rule(shape.gradients->placement, options_.optimizer);
  const std::int64_t states = part.states;
  part_ = store_.trained_parts().add(std::move(part), others);
  if (others.empty()) {
    if (own != shape.gradients->placement) shape.gradients = compile_gradients(shape, &own);
    store_.place(own, backend);
    store_.require_states(states);
    store_.reset_states();
    if (store_.types().scales_loss())
      store_.write_loss_scale(first_loss_scale(shape.model.outputs, samples_of_loss));
    return make_step(shape);
  }
  store_.place(store_.complete(placed_beside(store_.placement(), others, own, states)), backend);
  store_.require_states(store_.trained_parts().states());
  for (std::int64_t index = 0; index < states; ++index)
    for (const std::string& parameter : parameters_)
      store_.write_state(index, parameter,
                         Tensor({store_.types().states, store_.spec(parameter).type.shape}));
  shape.forget_programs();
  make_step(shape);
}

// True if another Optimizer has placed the store since this one compiled. If the other Optimizer has ended this one,
// returns false: the programs of this one report that when they run.
bool Optimizer::must_compile_again() const {
  if (placed_times_ == store_.placed_times() || !store_.trained_parts().has(part_)) return false;
  return std::ranges::all_of(parameters_, [&](const std::string& name) {
    return store_.placement().find(name)->role == ParameterRole::trainable;
  });
}

double Optimizer::step(std::span<const Feed> feeds) {
  const InUse use = use_of(store_, "Optimizer::step");
  check_nothing_pending("step");
  if (has_ranks()) return step_on_ranks(feeds);
  check_labels(shape_for(feeds).labels, feeds);
  TrainingStep& step = *ready_shape().step;
  const std::int64_t number = steps() + 1;
  const MicroBatchInputs batch[] = {{feeds, samples_of_loss, 0}};
  const StepTicket ticket = step.run({.micro_batches = batch,
                                      .global_samples = samples_of_loss,
                                      .step = number,
                                      .learning_rate = learning_rate(),
                                      .seed = options_.seed});
  const StepMetrics metrics = step.metrics(ticket);
  const bool is_sound = std::isfinite(metrics.loss) && !metrics.failed;
  // With a loss scale, a step that is not sound was counted as skipped by the update.
  if (is_sound || store_.types().scales_loss()) {
    part_->updates = number;
    store_.trained_parts().set_updates(store_.updates() + 1);
  }
  if (!is_sound) throw_diverged(number, metrics.loss);
  metrics_ = metrics;
  return metrics.loss;
}

namespace {

double direction_of(Plateau::Mode mode) { return mode == Plateau::max ? 1 : 0; }

}  // namespace

// The state belongs to one direction of the metric. A schedule with another direction begins to observe anew.
PlateauState Optimizer::plateau() const {
  const Plateau* const plateau = options_.learning_rate.plateau();
  if (plateau == nullptr || part_->schedule.empty() || part_->schedule.back() != direction_of(plateau->mode))
    return {};
  return plateau_state(std::span(part_->schedule).first(std::tuple_size_v<PlateauNumbers>));
}

double Optimizer::learning_rate() const {
  return rate_ ? *rate_ : options_.learning_rate.learning_rate(steps(), plateau());
}

void Optimizer::set_learning_rate(double rate) {
  const InUse use = use_of(store_, "Optimizer::set_learning_rate");
  if (!std::isfinite(rate) || rate < 0)
    throw UserError(fmt::format(
        "Optimizer::set_learning_rate({}): a learning rate is a finite number, and not negative", rate));
  if (options_.learning_rate.plateau() != nullptr)
    throw UserError(
        "Optimizer::set_learning_rate: the schedule has a Plateau, which changes the learning rate; call "
        "observe(), or set OptimizerOptions::learning_rate to a number");
  for (const std::string& other : ranks().gather_all(fmt::format("{}", rate), "the learning rate"))
    if (other != fmt::format("{}", rate))
      throw UserError(fmt::format(
          "Optimizer::set_learning_rate({}): another rank sets {}; set the same rate on all ranks", rate,
          other));
  rate_ = rate;
}

void Optimizer::observe(double metric) {
  const InUse use = use_of(store_, "Optimizer::observe");
  if (options_.learning_rate.plateau() == nullptr)
    throw UserError(
        "Optimizer::observe: the schedule of the learning rate has no plateau that observes a metric; set "
        "OptimizerOptions::learning_rate to a Schedule whose decay is a Plateau");
  ranks().sum(DType::float64, reinterpret_cast<std::byte*>(&metric), 1, "the metric of a plateau");
  metric /= ranks().size();
  const PlateauNumbers numbers = numbers_of(options_.learning_rate.observe(metric, steps(), plateau()));
  part_->schedule.assign(numbers.begin(), numbers.end());
  part_->schedule.push_back(direction_of(options_.learning_rate.plateau()->mode));
}

void Optimizer::throw_diverged(std::int64_t step, double loss, std::string_view rest) const {
  std::string what = fmt::format("the loss of step {} is {}", step, std::isnan(loss) ? "nan" : "infinite");
  for (const ParameterSpec& spec : store_.specs()) {
    if (!std::isfinite(loss)) break;
    if (!parameters_.contains(spec.name)) continue;
    const Tensor gradient = store_.read_gradient(spec.name);
    if (all_finite(gradient)) continue;
    what = fmt::format("the loss of step {} is {}, with {} of the gradient of '{}'", step, loss,
                       first_bad(gradient), spec.name);
    break;
  }
  throw UserError(
      fmt::format("{}: training diverged, a sample holds such a number or an op has no finite derivative "
                  "there; lower the "
                  "learning rate or weight_decay, or set OptimizerOptions::watch to see which op made the "
                  "first such number; "
                  "weights and state are as before this step{}",
                  what, rest));
}

void Optimizer::save(const std::filesystem::path& directory, int keep) const {
  const InUse use = use_of(store_, "Optimizer::save");
  check_nothing_pending("save");
  RunState state{
      .step = store_.updates(), .seed = options_.seed, .optimizer = store_.trained_parts().names()};
  if (const auto& step = shapes_.front().step) step->await_weights();
  if (has_ranks()) {
    state.strategy_ranks = ranks().size();
    state.strategy = gather_strategy_state(ranks(), strategy_.parts.state);
  }
  on_rank_0(ranks(), "saving a checkpoint", [&] { save_checkpoint(directory, store_, state, keep); });
}

bool Optimizer::resume(const std::filesystem::path& directory) {
  const InUse use = use_of(store_, "Optimizer::resume");
  rate_.reset();
  *pending_ = {};
  const auto state = together(ranks(), "resuming", [&] {
    const auto loaded =
        load_checkpoint(directory, store_, store_.trained_parts().names(), {}, ranks().rank());
    if (loaded && loaded->seed != options_.seed)
      throw UserError(fmt::format(
          "the checkpoint in {} was made with seed {} and OptimizerOptions::seed is {}; resume with "
          "the same seed",
          directory.string(), loaded->seed, options_.seed));
    return loaded;
  });
  check_same_checkpoint(ranks(), state ? fmt::format("step {}", state->step) : "no checkpoint", directory);
  together(ranks(), "the state of the strategy", [&] {
    if (state)
      restore_strategy_state(state->strategy, ranks().rank(), state->strategy_ranks == ranks().size(),
                             strategy_.parts.state);
  });
  return state.has_value();
}

double Optimizer::step(std::initializer_list<Feed> feeds) {
  return step(std::span(feeds.begin(), feeds.size()));
}

double Optimizer::metric(std::string_view name) const {
  // A metric that is a mean is averaged over the batches of the ranks.
  const std::vector<Metric>& metrics = shapes_.front().model.outputs.metrics;
  const auto value_at = [&](std::size_t i) {
    if (!metrics_) return 0.0;
    return metrics[i].sum.is_empty() ? metrics_->sums[i] / static_cast<double>(ranks().size())
                                     : metrics_->sums[i];
  };
  std::vector<MetricValue> values;
  for (std::size_t i = 0; i < metrics.size(); ++i) values.push_back({metrics[i].name, value_at(i)});
  const double value = value_of(name, values);
  if (!metrics_) throw UserError("Optimizer::metric: no step has been made yet; call step() first");
  return value;
}

}  // namespace plexaura
