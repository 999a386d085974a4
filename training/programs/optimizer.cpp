#include "training/programs/optimizer.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/exchange/collective.h"
#include "core/ops/batch_norm.h"
#include "core/vm/watch.h"
#include "training/checkpoints/checkpoint.h"
#include "training/files/records.h"
#include "training/programs/model_inputs.h"

namespace plexaura {

namespace {

constexpr std::int64_t one_sample = 1;  // the batch counts as one sample, so that the loss gets no weight

// The collective of a single rank: a sum over all ranks is this rank's own value.
Collective& the_only_rank() {
  static SingleProcess rank;
  return rank;
}

}  // namespace

Optimizer::Optimizer(const LossOutputs& outputs, ParameterStore& store, Backend& backend,
                     const OptimizerOptions& options)
    : options_(options), store_(store.share()) {
  check_trains(store);
  check_loss_is_given(outputs);
  check_batch_norms(outputs.loss.graph(), "build the graph for two samples or more");
  options_.optimizer.groups = groups_by_name(options.optimizer.groups, store.specs());
  BuiltModel narrow;
  if (store.types().is_mixed()) narrow = narrowed(outputs.loss.graph(), outputs, store);
  labels_ = label_inputs(outputs.loss.graph());
  const LossOutputs& model = narrow.graph ? narrow.outputs : outputs;
  Graph& graph = model.loss.graph();
  const std::vector<ProgramOutput> gradients = training_outputs(graph, model, store, one_sample);
  const auto gradient_program =
      compile(graph, gradients, backend, {.types = store.types(), .apply_updates = false});
  store.place(gradient_program->placement, backend);
  store.require_states(state_count(options.optimizer));
  store.reset_states();
  step_ = std::make_unique<TrainingStep>(
      backend, store, alone_, static_cast<std::int64_t>(store.placement().bytes(ArenaKind::gradient)),
      options.watch);
  Graph update;
  build_update(update, options_.optimizer, store.placement(), step_->border().buckets(),
               {.replaced = replaced_buffers(graph), .is_guarded = true});
  // Not the store's placement, which may also contain frozen parameters: linked programs must have the same placement.
  const auto update_program = compile(update, {}, backend, {.placement = &gradient_program->placement});
  const auto workspace = std::make_shared<Workspace>(
      backend, std::max(gradient_program->arena_bytes, update_program->arena_bytes),
      gradient_program->feed_bytes);
  step_->add_program(one_sample, true, gradient_program, update_program.get(), workspace, &the_only_rank());
  for (const Metric& metric : outputs.metrics) metric_names_.push_back(metric.name);
}

double Optimizer::step(std::span<const Feed> feeds) {
  const InUse use(
      busy_, "Optimizer::step",
      "Optimizer::step: another thread makes a step now; an Optimizer serves one thread at a time");
  check_labels(labels_, feeds);
  const std::int64_t number = steps() + 1;
  const MicroBatchInputs batch[] = {{feeds, one_sample, 0}};
  const StepTicket ticket = step_->run({.micro_batches = batch,
                                        .global_samples = one_sample,
                                        .step = number,
                                        .learning_rate = options_.learning_rate.learning_rate(steps()),
                                        .seed = options_.seed});
  const StepMetrics metrics = step_->metrics(ticket);
  const bool is_sound = std::isfinite(metrics.loss) && !metrics.failed;
  // With a loss scale, a step that is not sound was counted as skipped by the update.
  if (is_sound || store_.types().scales_loss()) store_.set_updates(number);
  if (!is_sound) throw_diverged(number, metrics.loss);
  metrics_ = metrics;
  return metrics.loss;
}

void Optimizer::throw_diverged(std::int64_t step, double loss) const {
  std::string what = fmt::format("the loss of step {} is {}", step, std::isnan(loss) ? "nan" : "infinite");
  for (const ParameterSpec& spec : store_.specs()) {
    if (!std::isfinite(loss)) break;
    if (spec.role != ParameterRole::trainable) continue;
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
                  "weights and state are as before this step",
                  what));
}

void Optimizer::save(const std::filesystem::path& directory, int keep) const {
  const RunState state{
      .step = steps(), .seed = options_.seed, .optimizer = std::string(optimizer_name(options_.optimizer))};
  save_checkpoint(directory, store_, state, keep);
}

bool Optimizer::resume(const std::filesystem::path& directory) {
  const auto state = load_checkpoint(directory, store_, optimizer_name(options_.optimizer));
  if (state && state->seed != options_.seed)
    throw UserError(fmt::format(
        "the checkpoint in {} was made with seed {} and OptimizerOptions::seed is {}; resume with "
        "the same seed",
        directory.string(), state->seed, options_.seed));
  return state.has_value();
}

double Optimizer::step(std::initializer_list<Feed> feeds) {
  return step(std::span(feeds.begin(), feeds.size()));
}

double Optimizer::metric(std::string_view name) const {
  std::vector<MetricValue> values;
  for (std::size_t i = 0; i < metric_names_.size(); ++i)
    values.push_back({metric_names_[i], metrics_ ? metrics_->sums[i] : 0});
  const double value = value_of(name, values);
  if (!metrics_) throw UserError("Optimizer::metric: no step has been made yet; call step() first");
  return value;
}

}  // namespace plexaura
