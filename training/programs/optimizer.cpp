#include "training/programs/optimizer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/exchange/collective.h"
#include "core/ops/batch_norm.h"
#include "core/vm/watch.h"
#include "training/checkpoints/checkpoint.h"
#include "training/files/records.h"
#include "training/optimizers/group_optimizers.h"
#include "training/programs/optimizer_parts.h"
#include "training/ranks/on_rank_0.h"

namespace plexaura {

namespace {

// The collective of a single rank: a sum over all ranks is this rank's own value.
Collective& the_only_rank() {
  static SingleProcess rank;
  return rank;
}

}  // namespace

Optimizer::Optimizer(const LossOutputs& outputs, ParameterStore& store, Backend& backend,
                     const OptimizerOptions& options)
    : options_(options), backend_(backend), store_(store.share()), strategy_(options.strategy) {
  const InUse use = use_of(store, "Optimizer");
  // A mistake on one rank ends the constructor on all ranks, because the others would wait for that rank.
  place(backend, together(ranks(), "the options of an Optimizer", [&] { return read_model(outputs); }));
}

// Takes the model of the loss and the parameters to train.
PartBesideOthers Optimizer::read_model(const LossOutputs& outputs) {
  check_trains(store_);
  check_loss_is_given(outputs);
  check_batch_norms(outputs.loss.graph(), "build the graph for two samples or more");
  parameters_ = trained_parameters(store_, options_.parameters);
  TrainedPart part{.name = name(),
                   .parameters = parameters_,
                   .seed = options_.seed,
                   .states = state_count(options_.optimizer),
                   .has_ranks = has_ranks()};
  options_.optimizer.groups = groups_by_name(options_.optimizer.groups, specs_trained_here());
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
  check_model(outputs.loss.graph(), outputs, store_);
  model_ = store_.types().is_mixed() ? narrowed(outputs.loss.graph(), outputs, store_) : copied(outputs);
  labels_ = label_inputs(outputs.loss.graph());
  outputs_ = training_outputs(*model_.graph, model_.outputs, store_, samples_of_loss, &parameters_);
  for (const Metric& metric : outputs.metrics) metric_names_.push_back(metric.name);
  return {std::move(part), others};
}

// The specs of the store, of which only the parameters of this optimizer are trainable.
std::vector<ParameterSpec> Optimizer::specs_trained_here() const {
  std::vector<ParameterSpec> specs = store_.specs();
  for (ParameterSpec& spec : specs)
    if (spec.role == ParameterRole::trainable && !parameters_.contains(spec.name))
      spec.role = ParameterRole::frozen;
  return specs;
}

// The name by which checkpoints know this optimizer, before its groups are divided into parameters.
std::string Optimizer::name() const {
  std::string name = optimizer_name(options_.optimizer);
  if (!options_.parameters.empty()) name += fmt::format(" of {}", fmt::join(options_.parameters, ", "));
  return name;
}

Collective& Optimizer::ranks() const { return options_.ranks != nullptr ? *options_.ranks : the_only_rank(); }

// Places the store for this optimizer and the others, whose state is kept.
void Optimizer::place(Backend& backend, PartBesideOthers placed) {
  auto& [part, others] = placed;
  if (has_ranks()) return place_on_ranks(backend, std::move(part));
  auto program = compile_gradients(nullptr);
  const Placement own = ordered_by_rule(program->placement, options_.optimizer);
  const std::int64_t states = part.states;
  part_ = store_.trained_parts().add(std::move(part), others);
  if (others.empty()) {
    store_.place(own, backend);
    store_.require_states(states);
    store_.reset_states();
    return make_step(own == program->placement ? std::move(program) : compile_gradients(&own));
  }
  store_.place(store_.complete(placed_beside(store_.placement(), others, own, states)), backend);
  store_.require_states(store_.trained_parts().states());
  for (std::int64_t index = 0; index < states; ++index)
    for (const std::string& parameter : parameters_)
      store_.write_state(index, parameter,
                         Tensor({store_.types().states, store_.spec(parameter).type.shape}));
  make_step(compile_gradients(&store_.placement()));
}

std::shared_ptr<const Program> Optimizer::compile_gradients(const Placement* placement) const {
  return compile(*model_.graph, outputs_, backend_.get(),
                 {.placement = placement, .types = store_.types(), .apply_updates = false});
}

void Optimizer::make_step(std::shared_ptr<const Program> gradients) {
  Backend& backend = backend_.get();
  // One rank has nothing to exchange, and one bucket.
  const std::int64_t bucket_bytes =
      has_ranks() ? 25 << 20 : static_cast<std::int64_t>(store_.placement().bytes(ArenaKind::gradient));
  step_ = std::make_unique<TrainingStep>(backend, store_, strategy_, bucket_bytes, options_.watch);
  std::vector<Bucket> buckets = buckets_of(store_.placement(), parameters_);
  if (has_ranks()) buckets.assign(step_->border().buckets().begin(), step_->border().buckets().end());
  Graph update;
  // The gradient arena holds the changes of other buffers by other Optimizers, which have made them already.
  build_update(update, options_.optimizer, store_.placement(), buckets,
               {.replaced = replaced_buffers(*model_.graph),
                .updated = updated_buffers(*model_.graph),
                .is_weighted = !model_.outputs.weight.is_empty(),
                .is_guarded = true});
  // Not the store's placement, which may also contain frozen parameters: linked programs must have the same placement.
  const auto update_program = compile(update, {}, backend, {.placement = &gradients->placement});
  update_hash_ = update_program->plan_hash();
  const auto workspace = std::make_shared<Workspace>(
      backend, std::max(gradients->arena_bytes, update_program->arena_bytes), gradients->feed_bytes);
  step_->add_program(samples_of_loss, true, std::move(gradients), update_program.get(), workspace, &ranks());
  placed_times_ = store_.placed_times();
  separate_.reset();
}

// True if another Optimizer has placed the store since. If that has ended this one, its programs say so when they run.
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
  check_labels(labels_, feeds);
  if (must_compile_again()) make_step(compile_gradients(&store_.placement()));
  const std::int64_t number = steps() + 1;
  const MicroBatchInputs batch[] = {{feeds, samples_of_loss, 0}};
  const StepTicket ticket = step_->run({.micro_batches = batch,
                                        .global_samples = samples_of_loss,
                                        .step = number,
                                        .learning_rate = learning_rate(),
                                        .seed = options_.seed});
  const StepMetrics metrics = step_->metrics(ticket);
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

// The state belongs to one direction of the metric. A schedule with another one begins to observe anew.
PlateauState Optimizer::plateau() const {
  const Plateau* const plateau = options_.learning_rate.plateau();
  if (plateau == nullptr || part_->schedule.empty() || part_->schedule.back() != direction_of(plateau->mode))
    return {};
  return plateau_state(std::span(part_->schedule).first(std::tuple_size_v<PlateauNumbers>));
}

double Optimizer::learning_rate() const { return options_.learning_rate.learning_rate(steps(), plateau()); }

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
  const RunState state{
      .step = store_.updates(), .seed = options_.seed, .optimizer = store_.trained_parts().names()};
  step_->await_weights();
  on_rank_0(ranks(), "saving a checkpoint", [&] { save_checkpoint(directory, store_, state, keep); });
}

bool Optimizer::resume(const std::filesystem::path& directory) {
  const InUse use = use_of(store_, "Optimizer::resume");
  if (separate_) separate_->drop();
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
  check_same_checkpoint(state ? fmt::format("step {}", state->step) : "no checkpoint", directory);
  return state.has_value();
}

double Optimizer::step(std::initializer_list<Feed> feeds) {
  return step(std::span(feeds.begin(), feeds.size()));
}

double Optimizer::metric(std::string_view name) const {
  // A mean is that of the ranks' batches.
  const auto samples_of = [&](std::size_t i) {
    return model_.outputs.metrics[i].sum.is_empty() ? static_cast<double>(ranks().size()) : 1.0;
  };
  std::vector<MetricValue> values;
  for (std::size_t i = 0; i < metric_names_.size(); ++i)
    values.push_back({metric_names_[i], metrics_ ? metrics_->sums[i] / samples_of(i) : 0});
  const double value = value_of(name, values);
  if (!metrics_) throw UserError("Optimizer::metric: no step has been made yet; call step() first");
  return value;
}

}  // namespace plexaura
