#include "core/ops/vector_losses.h"

#include <cmath>
#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/loss_support.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"

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

}  // namespace plexaura
