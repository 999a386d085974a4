#include "models/zoo/model.h"

#include <optional>

#include "core/ops/labels.h"
#include "core/ops/losses.h"
#include "models/zoo/regression.h"

namespace plexaura {

Node Model::operator()(Operand x) const {
  Graph& graph = x.node().graph();
  std::optional<Graph::WithOrigin> origin;
  if (!info_.origin.file.empty()) origin.emplace(graph, info_.origin);
  const auto call = enter_unseen(x);
  if (x.node().dtype() != DType::uint8) return forward(x);
  return forward({normalise_image(x, {info_.pixels, dtype()}), x.where()});
}

namespace {

Node loss_of(Loss kind, Operand outputs, Operand labels) {
  if (kind == Loss::softmax_cross_entropy) return softmax_cross_entropy(outputs, labels);
  const Operand wanted{one_hot(labels, outputs.node().shape()[1], outputs.node().dtype()), outputs.where()};
  return kind == Loss::squared_error ? squared_error(outputs, wanted)
                                     : binary_cross_entropy_with_logits(outputs, wanted);
}

}  // namespace

LossOutputs build_loss(const Model& model, Operand outputs, Operand labels) {
  constexpr std::int64_t top = 5;
  const Graph::Scope scope(outputs.node().graph(), "loss");
  if (model.info().task == Task::regression) return build_regression(model, outputs, labels);
  LossOutputs result{.loss = loss_of(model.info().loss, outputs, labels)};
  result.metrics.push_back({.name = "accuracy", .sum = top_k_correct(outputs, labels, 1)});
  if (model.classes() > top)
    result.metrics.push_back({.name = "accuracy_top5", .sum = top_k_correct(outputs, labels, top)});
  return result;
}

Field expected_field(const Model& model) {
  if (model.info().task == Task::classification) return {"labels", {DType::int64, {}}};
  return {"targets", {DType::float32, {model.classes()}}};
}

ModelBuilder builder_of(Model& model) {
  return [&model](const ModelInputs& inputs) {
    return build_loss(model, model(inputs["samples"]), inputs[expected_field(model).name]);
  };
}

}  // namespace plexaura
