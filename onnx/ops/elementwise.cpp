// Ops that compute each element from the elements at the same place.

#include <fmt/format.h>
#include <limits>

#include "onnx/ops/table.h"

#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "core/ops/dropout.h"
#include "core/ops/logic.h"
#include "core/ops/shape.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

template <Node (*function)(Operand)>
std::vector<Node> unary_of(Call& call) {
  return {function(call[0])};
}

// The second operand. Before version 7 operands broadcast only if an attribute said so, and an axis might say where the
// axes of the second one began.
Node second_operand(Call& call) {
  const Node b = call[1];
  if (call.version() >= 7) return b;
  call.ignore("broadcast");
  if (!call.has_attribute("axis")) return b;
  const std::int64_t rank = call[0].shape().rank();
  std::vector<std::int64_t> extents = b.shape().extents();
  for (std::int64_t i = normalise_axis(call.integer("axis", 0), rank) + b.shape().rank(); i < rank; ++i)
    extents.push_back(1);
  return reshape(b, std::move(extents));
}

template <Node (*function)(Operand, Operand)>
std::vector<Node> binary_of(Call& call) {
  return {function(call[0], second_operand(call))};
}

Node fold_inputs(const Call& call, Node (*function)(Operand, Operand)) {
  Node result = call[0];
  for (std::size_t i = 1; i < call.inputs(); ++i) result = function(result, call[i]);
  return result;
}

template <Node (*function)(Operand, Operand)>
std::vector<Node> variadic_of(Call& call) {
  return {fold_inputs(call, function)};
}

std::vector<Node> mean_of_inputs(Call& call) {
  return {fold_inputs(call, add) / static_cast<double>(call.inputs())};
}

std::vector<Node> absolute(Call& call) {
  const Node x = call[0];
  if (is_floating(x.dtype())) return {abs(x)};
  return {x.dtype() == DType::uint8 ? x : maximum(x, x * -1)};
}

std::vector<Node> negative(Call& call) {
  return {is_floating(call[0].dtype()) ? neg(call[0]) : call[0] * -1};
}

// The exponent may have another type. Integers are raised in float64, which is exact up to 2^53.
std::vector<Node> power(Call& call) {
  const DType dtype = call[0].dtype();
  const DType wide = is_floating(dtype) ? dtype : DType::float64;
  return {cast(pow(cast(call[0], wide), cast(second_operand(call), wide)), dtype)};
}

// With `fmod` the remainder has the sign of the dividend, otherwise that of the divisor.
std::vector<Node> modulo(Call& call) {
  const Node a = call[0];
  const Node b = call[1];
  if (!call.flag("fmod", false)) return {mod(a, b)};
  const Node quotient = a / b;
  return {a - b * (is_floating(a.dtype()) ? trunc(quotient) : quotient)};
}

std::vector<Node> bit_shift(Call& call) {
  const std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    throw UserError(fmt::format("direction must be LEFT or RIGHT, not '{}'", direction));
  return {direction == "LEFT" ? left_shift(call[0], call[1]) : right_shift(call[0], call[1])};
}

Node clamp(const Node& x, const Node& low, const Node& high) {
  Node result = x;
  if (!low.is_empty()) result = maximum(result, low);
  return high.is_empty() ? result : minimum(result, high);
}

std::vector<Node> clip_by_attributes(Call& call) {
  const double largest = std::numeric_limits<float>::max();
  const double low = call.real("min", -largest);
  const double high = call.real("max", largest);
  return {clip(call[0], low, high)};
}

std::vector<Node> clip_by_inputs(Call& call) {
  return {with_shape_of(call[0], clamp(call[0], call.optional(1), call.optional(2)))};
}

std::vector<Node> leaky(Call& call) { return {leaky_relu(call[0], call.real("alpha", 0.01))}; }
std::vector<Node> elu_of(Call& call) { return {elu(call[0], call.real("alpha", 1))}; }
std::vector<Node> celu_of(Call& call) { return {celu(call[0], call.real("alpha", 1))}; }
std::vector<Node> selu_of(Call& call) {
  const double alpha = call.real("alpha", 1.6732632423543772);
  return {elu(call[0], alpha) * call.real("gamma", 1.0507009873554805)};
}
// Before version 7 the slope had one number, or one for each channel.
std::vector<Node> prelu_per_channel(Call& call) { return {prelu(call[0], call[1])}; }
std::vector<Node> prelu_of(Call& call) {
  return {with_shape_of(call[0], where(gt(call[0], 0), call[0], call[0] * call[1]))};
}
std::vector<Node> hard_sigmoid_of(Call& call) {
  const double alpha = call.real("alpha", 0.2);
  return {clip(call[0] * alpha + call.real("beta", 0.5), 0, 1)};
}
std::vector<Node> gelu_of(Call& call) {
  return {gelu(call[0], {.tanh = call.text("approximate", "none") == "tanh"})};
}
std::vector<Node> thresholded_relu(Call& call) {
  return {where(gt(call[0], call.real("alpha", 1)), call[0], 0)};
}
std::vector<Node> shrink(Call& call) {
  const Node x = call[0];
  const double bias = call.real("bias", 0);
  const double limit = call.real("lambd", 0.5);
  if (!is_floating(x.dtype())) throw UserError("it is supported for floating types only");
  return {where(lt(x, -limit), x + bias, where(gt(x, limit), x - bias, x * 0.0))};
}

std::vector<Node> is_infinite(Call& call) {
  const bool negative = call.flag("detect_negative", true);
  const bool positive = call.flag("detect_positive", true);
  const double infinity = std::numeric_limits<double>::infinity();
  const Node below = eq(call[0], -infinity);
  const Node above = eq(call[0], infinity);
  if (negative && positive) return {logical_or(below, above)};
  if (!negative && !positive) return {logical_and(below, above)};
  return {negative ? below : above};
}

std::vector<Node> cast_to(Call& call) {
  call.ignore("saturate");
  return {cast(call[0], dtype_of(static_cast<ElementType>(call.integer("to", 0))))};
}
std::vector<Node> cast_like(Call& call) {
  call.ignore("saturate");
  return {cast(call[0], call[1].dtype())};
}
std::vector<Node> identity(Call& call) { return {call[0]}; }

Node all_true(const Node& like) {
  return broadcast_to(like.graph().constant(Tensor::scalar(true)), like.shape());
}

// Before version 7 the attribute is_test switches the op off. From version 7 to 11 the op drops elements whenever the
// graph is built for training. Before version 10 the mask has the type of x.
std::vector<Node> dropout_by_mode(Call& call) {
  call.ignore("seed");
  const Node x = call[0];
  const double ratio = call.real("ratio", 0.5);
  const bool is_off = call.version() < 7 && call.flag("is_test", false);
  if (call.wants(1) && !is_off && call.graph().mode() == Mode::train)
    throw UserError("its mask is not supported for training");
  const Node mask = call.version() < 10 ? cast(all_true(x), x.dtype()) : all_true(x);
  return {is_off ? x : dropout(x, {.p = ratio}), mask};
}
std::vector<Node> dropout_by_input(Call& call) {
  call.ignore("seed");
  const double ratio = call.has(1) ? call.number(1) : 0.5;
  const bool trains = call.has(2) && call.number(2) != 0;
  if (!trains || ratio == 0) return {call[0], all_true(call[0])};
  if (call.wants(1)) throw UserError("its mask is not supported for training");
  return {dropout(call[0], {.p = ratio})};
}

std::vector<Node> choose(Call& call) { return {where(call[0], call[1], call[2])}; }

constexpr Row rows[] = {
    {"Abs", 1, absolute},
    {"Acos", 7, unary_of<acos>},
    {"Acosh", 9, unary_of<acosh>},
    {"Add", 6, binary_of<add>},
    {"And", 7, binary_of<logical_and>},
    {"Asin", 7, unary_of<asin>},
    {"Asinh", 9, unary_of<asinh>},
    {"Atan", 7, unary_of<atan>},
    {"Atanh", 9, unary_of<atanh>},
    {"BitShift", 11, bit_shift},
    {"BitwiseAnd", 18, binary_of<bitwise_and>},
    {"BitwiseNot", 18, unary_of<bitwise_not>},
    {"BitwiseOr", 18, binary_of<bitwise_or>},
    {"BitwiseXor", 18, binary_of<bitwise_xor>},
    {"Cast", 6, cast_to},
    {"CastLike", 15, cast_like},
    {"Ceil", 1, unary_of<ceil>},
    {"Celu", 12, celu_of},
    {"Clip", 6, clip_by_attributes},
    {"Clip", 11, clip_by_inputs},
    {"Cos", 7, unary_of<cos>},
    {"Cosh", 9, unary_of<cosh>},
    {"Div", 6, binary_of<div>},
    {"Dropout", 6, dropout_by_mode},
    {"Dropout", 12, dropout_by_input},
    {"Elu", 1, elu_of},
    {"Equal", 7, binary_of<eq>},
    {"Erf", 9, unary_of<erf>},
    {"Exp", 1, unary_of<exp>},
    {"Floor", 1, unary_of<floor>},
    {"Gelu", 20, gelu_of},
    {"Greater", 7, binary_of<gt>},
    {"GreaterOrEqual", 12, binary_of<ge>},
    {"HardSigmoid", 1, hard_sigmoid_of},
    {"HardSwish", 14, unary_of<hard_swish>},
    {"Identity", 1, identity},
    {"IsInf", 10, is_infinite},
    {"IsNaN", 9, unary_of<is_nan>},
    {"LeakyRelu", 1, leaky},
    {"Less", 7, binary_of<lt>},
    {"LessOrEqual", 12, binary_of<le>},
    {"Log", 1, unary_of<log>},
    {"Max", 6, variadic_of<maximum>},
    {"Mean", 6, mean_of_inputs},
    {"Min", 6, variadic_of<minimum>},
    {"Mish", 18, unary_of<mish>},
    {"Mod", 10, modulo},
    {"Mul", 6, binary_of<mul>},
    {"Neg", 1, negative},
    {"Not", 1, unary_of<logical_not>},
    {"Or", 7, binary_of<logical_or>},
    {"PRelu", 1, prelu_per_channel},
    {"PRelu", 7, prelu_of},
    {"Pow", 6, power},
    {"Reciprocal", 1, unary_of<reciprocal>},
    {"Relu", 1, unary_of<relu>},
    {"Round", 11, unary_of<round>},
    {"Selu", 1, selu_of},
    {"Shrink", 9, shrink},
    {"Sigmoid", 1, unary_of<sigmoid>},
    {"Sign", 9, unary_of<sign>},
    {"Sin", 7, unary_of<sin>},
    {"Sinh", 9, unary_of<sinh>},
    {"Softplus", 1, unary_of<softplus>},
    {"Softsign", 1, unary_of<softsign>},
    {"Sqrt", 1, unary_of<sqrt>},
    {"Sub", 6, binary_of<sub>},
    {"Sum", 6, variadic_of<add>},
    {"Tan", 7, unary_of<tan>},
    {"Tanh", 1, unary_of<tanh>},
    {"ThresholdedRelu", 10, thresholded_relu},
    {"Where", 9, choose},
    {"Xor", 7, binary_of<logical_xor>},
};

}  // namespace

std::span<const Row> elementwise_rows() { return rows; }

}  // namespace plexaura::onnx
