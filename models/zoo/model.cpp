#include "models/zoo/model.h"

#include <optional>

#include "core/ops/labels.h"
#include "core/ops/losses.h"

namespace plexaura {

Node Model::operator()(Operand x) {
  Graph& graph = x.node().graph();
  std::optional<Graph::WithOrigin> origin;
  if (!info_.origin.file.empty()) origin.emplace(graph, info_.origin);
  const auto call = enter(x);
  if (x.node().dtype() != DType::uint8) return forward(x);
  return forward({normalise_image(x, {info_.pixels, dtype()}), x.where()});
}

LossOutputs build_loss(const Model& model, Operand outputs, Operand labels) {
  constexpr std::int64_t top = 5;
  const bool squared = model.info().loss == Loss::squared_error;
  const Graph::Scope scope(outputs.node().graph(), "loss");
  const auto wanted = [&] { return one_hot(labels, outputs.node().shape()[1], outputs.node().dtype()); };
  LossOutputs result{.loss = squared ? squared_error(outputs, {wanted(), outputs.where()})
                                     : softmax_cross_entropy(outputs, labels)};
  result.metrics.push_back({.name = "accuracy", .sum = top_k_correct(outputs, labels, 1)});
  if (model.classes() > top)
    result.metrics.push_back({.name = "accuracy_top5", .sum = top_k_correct(outputs, labels, top)});
  return result;
}

ModelBuilder builder_of(Model& model) {
  return [&model](const ModelInputs& inputs) {
    return build_loss(model, model(inputs["samples"]), inputs["labels"]);
  };
}

}  // namespace plexaura
