#include "core/ops/vector_losses.h"

#include <cmath>
#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/loss_support.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"
#include "core/ops/vectors.h"

namespace plexaura {

namespace {

void require_options(const Operand& anchor, const TripletMarginOptions& options) {
  require_that(anchor.node().shape().rank() > 0, "triplet_margin", {anchor},
               "the operands need an axis, along which the vectors are; reshape them");
  require_that(std::isfinite(options.margin), "triplet_margin", {anchor},
               fmt::format("the margin must be a finite number, not {}", options.margin));
  require_that(options.p > 0, "triplet_margin", {anchor},
               fmt::format("p must be above 0, not {}", options.p));
  require_that(std::isfinite(options.epsilon), "triplet_margin", {anchor},
               fmt::format("epsilon must be a finite number, not {}", options.epsilon));
}

}  // namespace

Node triplet_margin(Operand anchor, Operand positive, Operand negative, TripletMarginOptions options) {
  const LossOf loss("triplet_margin", {anchor, positive, negative});
  require_options(anchor, options);
  const auto distance = [&](const Node& a, const Node& b) {
    return norm(a - b + options.epsilon, {.p = options.p, .axes = {-1}});
  };
  Node far = distance(anchor.node(), negative.node());
  if (options.swap) far = minimum(far, distance(positive.node(), negative.node()));
  return reduce_losses(relu(options.margin + distance(anchor.node(), positive.node()) - far),
                       options.reduction);
}

Node cosine_embedding(Operand a, Operand b, Operand target, double margin, Reduction reduction) {
  const LossOf loss("cosine_embedding", {a, b});
  const TensorType& type = a.node().type();
  require_that(type.shape.rank() > 0, "cosine_embedding", {a, b, target},
               "the operands need an axis, along which the vectors are; reshape them");
  const TensorType expected{type.dtype,
                            Shape(std::vector<std::int64_t>(type.shape.begin(), type.shape.end() - 1))};
  require_that(target.node().type() == expected, "cosine_embedding", {a, b, target},
               fmt::format("the target must be {}, a number for each vector", to_string(expected)));
  require_that(std::isfinite(margin), "cosine_embedding", {a, b, target},
               fmt::format("the margin must be a finite number, not {}", margin));
  const Node cosine = cosine_similarity(a.node(), b.node());
  const Node apart = where(eq(target.node(), -1), relu(cosine - margin), 0);
  return reduce_losses(where(eq(target.node(), 1), 1 - cosine, apart), reduction);
}

}  // namespace plexaura
