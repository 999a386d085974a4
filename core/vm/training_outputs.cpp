#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "core/autodiff/gradients.h"
#include "core/error.h"
#include "core/ops/binary.h"
#include "core/vm/training_step.h"

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

void add_gradients(Graph& graph, const Node& loss, const ParameterStore& store,
                   std::vector<ProgramOutput>& outputs) {
  const auto parameters = parameters_of(graph);
  std::vector<Node> wanted;
  for (const ParameterSpec& spec : store.specs()) {
    if (spec.role != ParameterRole::trainable) continue;
    const auto found = parameters.find(spec.name);
    if (found == parameters.end())
      throw UserError(fmt::format(
          "the parameter '{}' is trainable and the model does not use it; use it or freeze it", spec.name));
    wanted.push_back(found->second);
    outputs.push_back({.node = {}, .gradient_of = spec.name});
  }
  const Node seed = graph.step_scalar(StepScalar::gradient_seed, loss.dtype());
  const std::vector<Node> found = gradients(loss, wanted, seed);
  for (std::size_t i = 0; i < found.size(); ++i) outputs[outputs.size() - found.size() + i].node = found[i];
}

// share x (new - old): summed over ranks and micro-batches this is one update of the buffer by the whole
// batch.
void add_buffer_changes(Graph& graph, std::int64_t samples, std::vector<ProgramOutput>& outputs) {
  for (const Update& update : graph.updates()) {
    const Node buffer(graph, update.buffer);
    const Leaf* leaf = as_leaf(*graph.record(buffer.id()).op);
    if (leaf->kind() != LeafKind::buffer) continue;
    const Node share = graph.step_scalar(StepScalar::share, buffer.dtype());
    const Node change =
        samples == 0 ? graph.constant(Tensor(buffer.type())) : share * (Node(graph, update.next) - buffer);
    outputs.push_back({.node = change, .gradient_of = leaf->label()});
  }
}

void add_tail(Graph& graph, const LossOutputs& model, std::int64_t samples,
              std::vector<ProgramOutput>& outputs) {
  const DType dtype = model.loss.dtype();
  const Node zero = graph.constant(Tensor(TensorType{dtype, {}}));
  const auto add = [&](TailSlot slot, const Node& node) { outputs.push_back({.node = node, .tail = slot}); };
  const auto scalar = [&](StepScalar which) { return graph.step_scalar(which, dtype); };
  add(TailSlot::loss, samples == 0 ? zero : model.loss * scalar(StepScalar::samples));
  if (model.correct) add(TailSlot::correct, samples == 0 ? zero : model.correct);
  if (model.correct_top5) add(TailSlot::correct_top5, samples == 0 ? zero : model.correct_top5);
  add(TailSlot::samples, scalar(StepScalar::samples));
  add(TailSlot::stop, scalar(StepScalar::stop));
  add(TailSlot::failed, scalar(StepScalar::failed));
}

}  // namespace

std::vector<ProgramOutput> training_outputs(Graph& graph, const LossOutputs& model,
                                            const ParameterStore& store, std::int64_t samples) {
  if (model.loss.dtype() != store.dtype())
    throw UserError(
        fmt::format("the loss is {} and the parameters are {}; cast() the inputs, so that both are one",
                    name_of(model.loss.dtype()), name_of(store.dtype())));
  std::vector<ProgramOutput> outputs;
  add_gradients(graph, model.loss, store, outputs);
  add_buffer_changes(graph, samples, outputs);
  add_tail(graph, model, samples, outputs);
  return outputs;
}

}  // namespace plexaura
