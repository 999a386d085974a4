#include "models/zoo/model.h"

#include <optional>

#include "core/ops/binary.h"
#include "core/ops/classes.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Node squared_error(Operand outputs, Operand labels) {
  const auto where = outputs.where();
  const Node wanted = one_hot(labels, outputs.node().shape()[1], outputs.node().dtype());
  const Node squares = square({sub(outputs, wanted), where});
  return mean({sum({squares, where}, {.axes = {1}}), where});
}

}  // namespace

Node Model::operator()(Operand x) {
  Graph& graph = x.node().graph();
  std::optional<Graph::WithOrigin> origin;
  if (!info_.origin.file.empty()) origin.emplace(graph, info_.origin);
  return forward(x);
}

LossOutputs build_loss(const Model& model, Operand outputs, Operand labels) {
  constexpr std::int64_t top = 5;
  const bool squared = model.info().loss == Loss::squared_error;
  const Graph::Scope scope(outputs.node().graph(), "loss");
  LossOutputs result{.loss =
                         squared ? squared_error(outputs, labels) : softmax_cross_entropy(outputs, labels)};
  result.correct = top_k_correct(outputs, labels, 1);
  if (model.classes() > top) result.correct_top5 = top_k_correct(outputs, labels, top);
  return result;
}

}  // namespace plexaura
