#include "training/optimizer.h"

#include <algorithm>

#include "core/ops/batch_norm.h"
#include "core/ranks/collective.h"
#include "training/model_inputs.h"
#include "training/records.h"

namespace plexaura {

namespace {

constexpr std::int64_t one_sample = 1;  // the whole batch: the loss is weighted by nothing

// What a model sums over all ranks is what this one has.
Collective& the_only_rank() {
  static SingleProcess rank;
  return rank;
}

}  // namespace

Optimizer::Optimizer(const LossOutputs& outputs, ParameterStore& store, Backend& backend,
                     const OptimizerOptions& options)
    : options_(options) {
  check_trains(store);
  check_loss_is_given(outputs);
  check_batch_norms(outputs.loss.graph(), "build the graph for two samples or more");
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
  step_ = std::make_unique<TrainingStep>(
      backend, store, nullptr, static_cast<std::int64_t>(store.placement().bytes(ArenaKind::gradient)),
      options.watch);
  Graph update;
  build_update(update, options.optimizer, store.placement(), step_->border().buckets(),
               {.replaced = replaced_buffers(graph)});
  const auto update_program = compile(update, {}, backend, {.placement = &store.placement()});
  const auto workspace = std::make_shared<Workspace>(
      backend, std::max(gradient_program->arena_bytes, update_program->arena_bytes),
      gradient_program->feed_bytes);
  step_->add_program(one_sample, true, gradient_program, update_program.get(), workspace, &the_only_rank());
  for (const Metric& metric : outputs.metrics) metric_names_.push_back(metric.name);
}

double Optimizer::step(std::span<const Feed> feeds) {
  check_labels(labels_, feeds);
  const MicroBatchInputs batch[] = {{feeds, one_sample, 0}};
  const StepTicket ticket = step_->run({.micro_batches = batch,
                                        .global_samples = one_sample,
                                        .step = steps_ + 1,
                                        .learning_rate = options_.learning_rate.learning_rate(steps_),
                                        .seed = options_.seed});
  metrics_ = step_->metrics(ticket);
  ++steps_;
  return metrics_.loss;
}

double Optimizer::step(std::initializer_list<Feed> feeds) {
  return step(std::span(feeds.begin(), feeds.size()));
}

double Optimizer::metric(std::string_view name) const {
  std::vector<MetricValue> values;
  for (std::size_t i = 0; i < metric_names_.size(); ++i)
    values.push_back({metric_names_[i], metrics_.sums[i]});
  const double value = value_of(name, values);
  if (steps_ == 0) throw UserError("Optimizer::metric: no step has been made yet; call step() first");
  return value;
}

}  // namespace plexaura
