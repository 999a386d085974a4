#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/shape.h"
#include "core/step/training_step.h"

namespace plexaura {

namespace {

std::map<std::string, Node> parameters_of(Graph& graph) {
  std::map<std::string, Node> parameters;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Leaf* leaf = as_leaf(*graph.record(id).op);
    if (leaf != nullptr && leaf->kind() == LeafKind::parameter)
      parameters.emplace(leaf->label(), Node(graph, {id, 0}));
  }
  return parameters;
}

// Returns a hint for an error: the parameters that the model asks for under names that the store does not
// have.
std::string unknown_names(const std::map<std::string, Node>& used, const ParameterStore& store) {
  std::vector<std::string> unknown;
  for (const auto& [name, node] : used)
    if (!store.contains(name)) unknown.push_back(fmt::format("'{}'", name));
  if (unknown.empty()) return {};
  return fmt::format(", but asks for {}, which the store does not have", fmt::join(unknown, ", "));
}

// Returns the gradient of the loss with which backward begins. Each sample of a loss with a weight counts as much in every
// micro-batch, so the share of the micro-batch is divided by its samples.
Node seed_of(Graph& graph, const LossOutputs& model, const ParameterStore& store, std::int64_t samples) {
  Node seed = graph.step_scalar(StepScalar::gradient_seed, model.loss.dtype());
  if (!model.weight.is_empty() && samples > 1) seed = seed / static_cast<double>(samples);
  if (!store.types().scales_loss()) return seed;
  return seed * reshape(graph.arena_slice(slice_of(ScalingSlot::scale), DType::float32), {});
}

void add_gradients(Graph& graph, const LossOutputs& model, const ParameterStore& store, std::int64_t samples,
                   const std::set<std::string>* trained, std::vector<ProgramOutput>& outputs) {
  const auto parameters = parameters_of(graph);
  std::vector<Node> wanted;
  for (const ParameterSpec& spec : store.specs()) {
    if (spec.role != ParameterRole::trainable) continue;
    if (trained != nullptr && !trained->contains(spec.name)) continue;
    const auto found = parameters.find(spec.name);
    if (found == parameters.end())
      throw UserError(
          fmt::format("the parameter '{}' is trainable and the model does not use it{}; use it or freeze it",
                      spec.name, unknown_names(parameters, store)));
    wanted.push_back(found->second);
    outputs.push_back({.node = {}, .gradient_of = spec.name});
  }
  const std::vector<Node> found = gradients(model.loss, wanted, seed_of(graph, model, store, samples));
  for (std::size_t i = 0; i < found.size(); ++i) outputs[outputs.size() - found.size() + i].node = found[i];
}

// Returns what the update adds to the buffer; empty if the next value is not the old value plus an addend.
std::optional<Value> addend_of(const Graph& graph, const Update& update) {
  const NodeRecord& next = graph.record(update.next.node);
  if (next.op->name() != "add") return std::nullopt;
  if (next.inputs[0] == update.buffer) return next.inputs[1];
  if (next.inputs[1] == update.buffer) return next.inputs[0];
  return std::nullopt;
}

// Returns the buffer that is updated; null if the update is of an arena slice.
const Leaf* updated_buffer(const Graph& graph, const Update& update) {
  const Leaf* leaf = as_leaf(*graph.record(update.buffer.node).op);
  return leaf->kind() == LeafKind::buffer ? leaf : nullptr;
}

// Adds outputs for the updates of buffers. Their sum over ranks and micro-batches is the update by the whole batch.
void add_buffers(Graph& graph, std::int64_t samples, std::vector<ProgramOutput>& outputs) {
  for (const Update& update : graph.updates()) {
    const Leaf* leaf = updated_buffer(graph, update);
    if (leaf == nullptr) continue;
    const TensorType& type = graph.type(update.buffer);
    const Node brought(graph, addend_of(graph, update).value_or(update.next));
    Node part = samples == 0 ? graph.constant(Tensor(type))
                             : graph.step_scalar(StepScalar::share, type.dtype) * brought;
    if (part.type() != type) part = broadcast_to(part, type.shape);
    outputs.push_back({.node = part, .gradient_of = leaf->label()});
  }
}

void add_tail(Graph& graph, const LossOutputs& model, std::int64_t samples,
              std::vector<ProgramOutput>& outputs) {
  const DType dtype = model.loss.dtype();
  const Node zero = graph.constant(Tensor(TensorType{dtype, {}}));
  const auto add = [&](TailSlot slot, const Node& node) { outputs.push_back({.node = node, .tail = slot}); };
  const auto scalar = [&](StepScalar which) { return graph.step_scalar(which, dtype); };
  const bool is_weighted = !model.weight.is_empty();
  const auto loss = [&] { return is_weighted ? model.loss : model.loss * scalar(StepScalar::samples); };
  add(TailSlot::loss, samples == 0 ? zero : loss());
  for (std::size_t i = 0; i < model.metrics.size(); ++i) {
    const Metric& metric = model.metrics[i];
    const auto sum = [&] {
      return metric.sum.is_empty() ? metric.mean * scalar(StepScalar::samples) : metric.sum;
    };
    add(metric_slot(i), samples == 0 ? zero : sum());
  }
  add(TailSlot::samples, scalar(StepScalar::samples));
  add(TailSlot::stop, scalar(StepScalar::stop));
  add(TailSlot::failed, scalar(StepScalar::failed));
  if (is_weighted) add(weight_slot, samples == 0 ? zero : model.weight);
}

// Returns a trainable parameter from which a gradient would pass to the value; empty if there is none.
std::string parameter_in(const Graph& graph, const Node& value, const ParameterStore& store) {
  std::vector<NodeId> open{value.id()};
  std::set<NodeId> seen;
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const NodeRecord& record = graph.record(id);
    const Leaf* leaf = as_leaf(*record.op);
    if (leaf != nullptr && leaf->kind() == LeafKind::parameter && store.contains(leaf->label()) &&
        store.spec(leaf->label()).role == ParameterRole::trainable)
      return leaf->label();
    if (record.op->name() == "stop_gradient") continue;
    for (const Value& input : record.inputs)
      if (is_floating(graph.type(input).dtype)) open.push_back(input.node);
  }
  return {};
}

void check_weight(const Graph& graph, const LossOutputs& model, const ParameterStore& store) {
  if (model.weight.is_empty()) return;
  if (&model.weight.graph() != &graph)
    throw UserError("the weight of the loss belongs to another graph than the loss; build both in one");
  const TensorType wanted{store.dtype(), {}};
  if (model.weight.type() != wanted)
    throw UserError(
        fmt::format("the weight of the loss is {} and must be {}; reduce it with sum(), and cast() it",
                    to_string(model.weight.type()), to_string(wanted)));
  if (const std::string name = parameter_in(graph, model.weight, store); !name.empty())
    throw UserError(fmt::format(
        "the weight of the loss depends on the trainable parameter '{}', and no gradient passes through it; "
        "compute it from the data, or take stop_gradient() of the parameter",
        name));
}

// Checks the metrics of a model. `most` is the number of slots of the tail that they may use.
void check_metrics(const Graph& graph, const std::vector<Metric>& metrics, std::size_t most, DType dtype) {
  if (metrics.size() > most)
    throw UserError(fmt::format("the model reports {} metrics; report at most {}", metrics.size(), most));
  std::set<std::string_view> names;
  for (const Metric& metric : metrics) {
    if (metric.name.empty() || !names.insert(metric.name).second)
      throw UserError(fmt::format("a metric is named '{}'; give each a name of its own", metric.name));
    if (metric.mean.is_empty() == metric.sum.is_empty())
      throw UserError(fmt::format("the metric '{}' needs a mean or a sum, and not both", metric.name));
    const Node& node = metric.sum.is_empty() ? metric.mean : metric.sum;
    if (&node.graph() != &graph)
      throw UserError(fmt::format("the metric '{}' belongs to another graph than the loss; build both in one",
                                  metric.name));
    const TensorType& type = node.type();
    if (type != TensorType{dtype, {}})
      throw UserError(
          fmt::format("the metric '{}' is {} and must be a scalar of {}; reduce it with mean() or "
                      "sum(), and cast() it",
                      metric.name, to_string(type), name_of(dtype)));
  }
}

void check_validation_sums(const Graph& graph, const ValidationSums& validation) {
  if (validation.sums.is_empty() && validation.values)
    throw UserError(
        "LossOutputs::validation has a function of values and no sums that it could be given; set the node "
        "of the sums");
  if (validation.sums.is_empty()) return;
  if (&validation.sums.graph() != &graph)
    throw UserError("the sums for validation belong to another graph than the loss; build both in one");
  if (!is_floating(validation.sums.dtype()))
    throw UserError(fmt::format("the sums for validation are {} and must be floating; cast() them",
                                to_string(validation.sums.type())));
}

}  // namespace

void check_trains(const ParameterStore& store) {
  const auto is_trained = [](const ParameterSpec& spec) { return spec.role == ParameterRole::trainable; };
  if (!store.specs().empty() && std::ranges::none_of(store.specs(), is_trained))
    throw UserError(
        "all parameters are frozen, so that nothing would be trained; leave some of them trainable");
}

void check_loss_is_given(const LossOutputs& model) {
  if (model.loss.is_empty()) throw UserError("LossOutputs::loss is empty; set it to the node of the loss");
}

void check_model(const Graph& graph, const LossOutputs& model, const ParameterStore& store) {
  check_loss_is_given(model);
  if (&model.loss.graph() != &graph)
    throw UserError(
        "the loss belongs to another graph than the model was given; build it of that one's inputs");
  if (store.dtype() != DType::float32 && store.dtype() != DType::float64)
    throw UserError(
        fmt::format("the parameters of the store are {}; training needs float32 or float64: make the "
                    "store anew",
                    name_of(store.dtype())));
  if (model.loss.dtype() != store.dtype())
    throw UserError(
        fmt::format("the loss is {} and the parameters of the store are {}; cast() the inputs, or make the "
                    "store anew: a model has the dtype of the last store that was made for it",
                    name_of(model.loss.dtype()), name_of(store.dtype())));
  check_weight(graph, model, store);
  check_metrics(graph, model.metrics, most_metrics - (model.weight.is_empty() ? 0 : 1), store.dtype());
  check_validation_sums(graph, model.validation);
}

std::set<std::string> updated_buffers(const Graph& graph) {
  std::set<std::string> names;
  for (const Update& update : graph.updates())
    if (const Leaf* leaf = updated_buffer(graph, update); leaf != nullptr) names.insert(leaf->label());
  return names;
}

std::set<std::string> replaced_buffers(const Graph& graph) {
  std::set<std::string> names;
  for (const Update& update : graph.updates())
    if (const Leaf* leaf = updated_buffer(graph, update); leaf != nullptr && !addend_of(graph, update))
      names.insert(leaf->label());
  return names;
}

std::vector<ProgramOutput> training_outputs(Graph& graph, const LossOutputs& model,
                                            const ParameterStore& store, std::int64_t samples,
                                            const std::set<std::string>* trained) {
  check_model(graph, model, store);
  std::vector<ProgramOutput> outputs;
  add_gradients(graph, model, store, samples, trained, outputs);
  add_buffers(graph, samples, outputs);
  add_tail(graph, model, samples, outputs);
  return outputs;
}

}  // namespace plexaura
