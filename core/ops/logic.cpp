#include "core/ops/logic.h"

#include <limits>

#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/elementwise.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

Operand truth(const Operand& x) { return {cast(x, DType::boolean), x.where()}; }

Node on_bits(std::string_view name, Operand a, Operand b) {
  return binary(
      name,
      [](const BinaryOperands&, const Node&) -> std::vector<Node> {
        return {Node(), Node()};
      },
      a, b, Domain::integers);
}

}  // namespace

Node logical_and(Operand a, Operand b) { return where(truth(a), truth(b), truth(a)); }
Node logical_or(Operand a, Operand b) { return where(truth(a), truth(a), truth(b)); }
Node logical_xor(Operand a, Operand b) { return ne(truth(a), truth(b)); }
Node logical_not(Operand x) { return eq(truth(x), {0, x.where()}); }

Node is_nan(Operand x) {
  require_floating_operand("is_nan", x);
  return ne(x, x);
}

Node is_finite(Operand x) {
  require_floating_operand("is_finite", x);
  return lt({abs(x), x.where()}, {std::numeric_limits<double>::infinity(), x.where()});
}

Node bitwise_and(Operand a, Operand b) { return on_bits("bitwise_and", a, b); }
Node bitwise_or(Operand a, Operand b) { return on_bits("bitwise_or", a, b); }
Node bitwise_xor(Operand a, Operand b) { return on_bits("bitwise_xor", a, b); }
Node left_shift(Operand a, Operand b) { return on_bits("left_shift", a, b); }
Node right_shift(Operand a, Operand b) { return on_bits("right_shift", a, b); }

// All bits are set in -1, and in the largest number of an unsigned dtype (uint8 is the only one).
Node bitwise_not(Operand x) {
  const double all_set = x.node().dtype() == DType::uint8 ? 255 : -1;
  return bitwise_xor(x, {all_set, x.where()});
}

}  // namespace plexaura
