#include "core/ops/vector_losses.h"

#include <cmath>
#include <fmt/format.h>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

void require_triplet(const Operand& anchor, const Operand& positive, const Operand& negative,
                     const TripletMarginOptions& options) {
  const std::initializer_list<Operand> operands{anchor, positive, negative};
  const TensorType& type = anchor.node().type();
  require_that(positive.node().type() == type && negative.node().type() == type, "triplet_margin", operands,
               "the operands must have one type and shape; cast or reshape one of them");
  require_that(is_floating(type.dtype), "triplet_margin", operands,
               "the operands must be floating; use cast()");
  require_that(type.shape.rank() > 0, "triplet_margin", operands,
               "the operands need an axis, along which the vectors are; reshape them");
  require_that(std::isfinite(options.margin), "triplet_margin", operands,
               fmt::format("the margin must be a finite number, not {}", options.margin));
  require_that(options.p > 0, "triplet_margin", operands,
               fmt::format("p must be above 0, not {}", options.p));
  require_that(std::isfinite(options.epsilon), "triplet_margin", operands,
               fmt::format("epsilon must be a finite number, not {}", options.epsilon));
}

Node reduced_losses(const Node& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  const bool adds = reduction == Reduction::sum || losses.shape().elements() == 0;
  return adds ? sum(losses) : mean(losses);
}

}  // namespace

Node triplet_margin(Operand anchor, Operand positive, Operand negative, TripletMarginOptions options) {
  require_triplet(anchor, positive, negative, options);
  Graph& graph = anchor.node().graph();
  const Graph::WithOrigin guard(graph, graph.origin_of(anchor.where()));
  const auto distance = [&](const Node& a, const Node& b) {
    return norm(a - b + options.epsilon, {.p = options.p, .axes = {-1}});
  };
  Node far = distance(anchor.node(), negative.node());
  if (options.swap) far = minimum(far, distance(positive.node(), negative.node()));
  return reduced_losses(relu(options.margin + distance(anchor.node(), positive.node()) - far),
                        options.reduction);
}

}  // namespace plexaura
