#include "core/ops/special_functions.h"

#include <fmt/format.h>
#include <numbers>

#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/unary.h"

namespace plexaura {

Node erfc(Operand x) {
  return unary(
      "erfc",
      [](const Node& x, const Node&, const Node& grad) {
        return grad * (-2 * std::numbers::inv_sqrtpi * exp(-square(x)));
      },
      x, Precision::wide);
}

Node erfinv(Operand x) {
  return unary(
      "erfinv",
      [](const Node&, const Node& y, const Node& grad) {
        return grad * (0.5 / std::numbers::inv_sqrtpi * exp(square(y)));
      },
      x, Precision::wide);
}

Node lgamma(Operand x) {
  return unary(
      "lgamma", [](const Node& x, const Node&, const Node& grad) { return grad * digamma(x); }, x,
      Precision::wide);
}

Node digamma(Operand x) { return polygamma(0, x); }

Node polygamma(int order, Operand x) {
  require_that(order >= 0, "polygamma", {x}, fmt::format("the order must not be negative, but is {}", order));
  return unary(
      "polygamma",
      [order](const Node& x, const Node&, const Node& grad) { return grad * polygamma(order + 1, x); }, x,
      Precision::wide, {{"order"}, {static_cast<double>(order)}});
}

}  // namespace plexaura
