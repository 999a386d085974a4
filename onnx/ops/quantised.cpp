// Ops on integers that stand for real numbers: (integer - zero point) scale.

#include <fmt/format.h>

#include "onnx/ops/matrices.h"
#include "onnx/ops/table.h"
#include "onnx/ops/windows.h"

#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

// Scales and zero points have one element, or one for each index of an axis of their value.
bool is_one(const Node& values) { return values.shape().elements() == 1; }

Node as_scalar(const Node& values, std::string_view name) {
  if (!is_one(values))
    throw UserError(
        fmt::format("{} must have one element, not the shape {}", name, to_string(values.shape())));
  return reshape(values, std::vector<std::int64_t>{});
}

// Returns a scale or zero point with the axes of its value, which have the extent 1 but for this axis.
Node along_axis(const Node& values, std::int64_t axis, const Shape& shape) {
  if (is_one(values)) return as_scalar(values, "it");
  axis = normalise_axis(axis, shape.rank());
  if (values.shape() != Shape{shape[axis]})
    throw UserError(
        fmt::format("a scale or zero point of {} must have one element, or one for each of the {} "
                    "indices of axis {}, not the shape {}",
                    to_string(shape), shape[axis], axis, to_string(values.shape())));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(shape.rank()), 1);
  extents[static_cast<std::size_t>(axis)] = shape[axis];
  return reshape(values, extents);
}

// Does as along_axis() for a stack of matrices and its rows (axis -2) or columns (axis -1). There may also be a number
// for each row or column of each matrix: [..., M, 1] or [..., 1, K].
Node along_matrix(const Node& values, std::int64_t axis, const Shape& shape) {
  if (is_one(values)) return as_scalar(values, "it");
  if (shape.rank() < 2) throw UserError("a vector has one scale and one zero point");
  if (values.shape().rank() < 2) return along_axis(values, axis, shape);
  std::vector<std::int64_t> extents = shape.extents();
  extents[extents.size() - (axis == -1 ? 2 : 1)] = 1;
  if (values.shape() != Shape(extents))
    throw UserError(fmt::format("a scale or zero point of {} must have the shape {}, not {}",
                                to_string(shape), to_string(Shape(extents)), to_string(values.shape())));
  return values;
}

void check_zero_point(const Node& zero, const Node& scale, DType dtype) {
  if (zero.dtype() != dtype)
    throw UserError(fmt::format("a zero point has the type of its integers, {}, not {}", name_of(dtype),
                                name_of(zero.dtype())));
  if (zero.shape() != scale.shape() && !(is_one(zero) && is_one(scale)))
    throw UserError(fmt::format("the zero point {} does not have the shape of its scale, {}",
                                to_string(zero.shape()), to_string(scale.shape())));
}

// Rounds to the nearest integer of uint8, the only quantised type of the standard that Plexaura has.
Node to_uint8(const Node& x) { return cast(clip(round(x), 0, 255), DType::uint8); }

std::vector<Node> quantise(Call& call) {
  call.ignore("saturate");  // matters only for results of other types
  const Node x = call[0];
  const std::int64_t axis = call.integer("axis", 1);
  const Node scaled = x / along_axis(call[1], axis, x.shape());
  if (!call.has(2)) return {to_uint8(scaled)};
  check_zero_point(call[2], call[1], DType::uint8);
  return {to_uint8(round(scaled) + cast(along_axis(call[2], axis, x.shape()), x.dtype()))};
}

// Returns the integers as floats. The zero point, which has the axes of x or none, is subtracted if there is one.
Node centred(const Node& x, const Node& zero, DType dtype) {
  const Node wide = cast(x, dtype);
  return zero.is_empty() ? wide : wide - cast(zero, dtype);
}

std::vector<Node> dequantise(Call& call) {
  const Node x = call[0];
  const std::int64_t axis = call.integer("axis", 1);
  if (call.has(2)) check_zero_point(call[2], call[1], x.dtype());
  const Node zero = call.has(2) ? along_axis(call[2], axis, x.shape()) : Node();
  return {centred(x, zero, call[1].dtype()) * along_axis(call[1], axis, x.shape())};
}

std::vector<Node> quantise_by_range(Call& call) {
  const Node x = call[0];
  const Node low = minimum(min(x), 0);
  const Node scale = (maximum(max(x), 0) - low) / 255;
  const Node zero = clip(round(-low / scale), 0, 255);
  return {to_uint8(round(x / scale) + zero), scale, cast(zero, DType::uint8)};
}

// The product of two inputs with their zero points subtracted. Sums of integers are exact in float64.
Node product_of_integers(const Call& call, std::size_t a, std::size_t b, const Node& zero_a,
                         const Node& zero_b) {
  const auto zero_along = [](const Node& zero, std::int64_t axis, const Node& matrix) {
    return zero.is_empty() ? zero : along_matrix(zero, axis, matrix.shape());
  };
  return matrix_product(centred(call[a], zero_along(zero_a, -2, call[a]), DType::float64),
                        centred(call[b], zero_along(zero_b, -1, call[b]), DType::float64));
}

std::vector<Node> matrix_product_of_integers(Call& call) {
  return {cast(product_of_integers(call, 0, 1, call.optional(2), call.optional(3)), DType::int32)};
}

Node as_float64(const Node& values) { return cast(values, DType::float64); }

// Rounds values in units of the result's scale, and adds its zero point. `zero` is the input with the zero point; the
// input before it is the scale.
Node to_result(const Call& call, const Node& units, std::size_t zero) {
  check_zero_point(call[zero], call[zero - 1], DType::uint8);
  return to_uint8(round(units) + as_float64(as_scalar(call[zero], "the zero point of the result")));
}

// Inputs: a, its scale and zero point, the same for b, scale and zero point of the result.
std::vector<Node> quantised_product(Call& call) {
  check_zero_point(call[2], call[1], call[0].dtype());
  check_zero_point(call[5], call[4], call[3].dtype());
  const bool has_vector = call[0].shape().rank() < 2 || call[3].shape().rank() < 2;
  if (has_vector && !(is_one(call[1]) && is_one(call[4])))
    throw UserError("products with a vector need one scale for each operand");
  const Node product = product_of_integers(call, 0, 3, call[2], call[5]);
  const Node scale = as_float64(along_matrix(call[1], -2, call[0].shape())) *
                     as_float64(along_matrix(call[4], -1, call[3].shape())) /
                     as_float64(as_scalar(call[6], "the scale of the result"));
  return {to_result(call, product * scale, 7)};
}

// Input `x` with the zero point of input `zero`, as float64. A zero point has one number, or one for each index of an
// axis of the weights.
Node centred_image(const Call& call, std::size_t x, std::size_t zero) {
  return centred(call[x], call.has(zero) ? as_scalar(call[zero], "the zero point of x") : Node(),
                 DType::float64);
}
Node centred_weights(const Call& call, std::size_t weights, std::size_t zero) {
  const Node values = call[weights];
  return centred(values, call.has(zero) ? along_axis(call[zero], 0, values.shape()) : Node(), DType::float64);
}

std::vector<Node> convolution_of_integers(Call& call) {
  return {cast(convolve(call, centred_image(call, 0, 2), centred_weights(call, 1, 3), {}), DType::int32)};
}

// Inputs: x, its scale and zero point, the same for the weights, scale and zero point of the result, and the bias.
std::vector<Node> quantised_convolution(Call& call) {
  check_zero_point(call[2], call[1], call[0].dtype());
  check_zero_point(call[5], call[4], call[3].dtype());
  const Node bias = call.has(8) ? as_float64(call[8]) : Node();
  const Node sums = convolve(call, centred_image(call, 0, 2), centred_weights(call, 3, 5), bias);
  const Node scale = as_float64(as_scalar(call[1], "the scale of x")) *
                     as_float64(along_axis(call[4], 1, sums.shape())) /
                     as_float64(as_scalar(call[6], "the scale of the result"));
  return {to_result(call, sums * scale, 7)};
}

constexpr Row rows_of_quantised[] = {
    {"ConvInteger", 10, convolution_of_integers},
    {"DequantizeLinear", 10, dequantise},
    {"DynamicQuantizeLinear", 11, quantise_by_range},
    {"MatMulInteger", 10, matrix_product_of_integers},
    {"QLinearConv", 10, quantised_convolution},
    {"QLinearMatMul", 10, quantised_product},
    {"QuantizeLinear", 10, quantise},
};

}  // namespace

std::span<const Row> quantised_rows() { return rows_of_quantised; }

}  // namespace plexaura::onnx
