// Ops on integers that stand for real numbers: (integer - zero point) scale.

#include <fmt/format.h>

#include "onnx/ops/table.h"
#include "onnx/ops/windows.h"

#include "core/ops/binary.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

// A scale or zero point with one number for each index of an axis gets the other axes, with the extent 1.
Node along_axis(const Node& values, std::int64_t axis, const Shape& shape) {
  if (values.shape().elements() == 1) return reshape(values, std::vector<std::int64_t>{});
  std::vector<std::int64_t> extents(static_cast<std::size_t>(shape.rank()), 1);
  extents[static_cast<std::size_t>(normalise_axis(axis, shape.rank()))] = values.shape().elements();
  return reshape(values, extents);
}

// Rounds to the nearest integer of uint8, which is the only type of the standard's that there is.
Node to_uint8(const Node& x) { return cast(clip(round(x), 0, 255), DType::uint8); }

std::vector<Node> quantise(Call& call) {
  const Node x = call[0];
  const std::int64_t axis = call.integer("axis", 1);
  const Node scaled = x / along_axis(call[1], axis, x.shape());
  if (!call.has(2)) return {to_uint8(scaled)};
  if (call[2].dtype() != DType::uint8) throw UserError("it is supported for uint8 only");
  return {to_uint8(round(scaled) + cast(along_axis(call[2], axis, x.shape()), x.dtype()))};
}

// The integers with their zero point subtracted, as floats.
Node centred(const Node& x, const Node& zero, std::int64_t axis, DType dtype) {
  const Node wide = cast(x, dtype);
  return zero.is_empty() ? wide : wide - cast(along_axis(zero, axis, x.shape()), dtype);
}

Node optional_input(const Call& call, std::size_t i) { return call.has(i) ? call[i] : Node(); }

std::vector<Node> dequantise(Call& call) {
  const std::int64_t axis = call.integer("axis", 1);
  return {centred(call[0], optional_input(call, 2), axis, call[1].dtype()) *
          along_axis(call[1], axis, call[0].shape())};
}

std::vector<Node> quantise_by_range(Call& call) {
  const Node x = call[0];
  const Node low = minimum(min(x), 0);
  const Node scale = (maximum(max(x), 0) - low) / 255;
  const Node zero = clip(round(-low / scale), 0, 255);
  return {to_uint8(round(x / scale) + zero), scale, cast(zero, DType::uint8)};
}

// Sums of integers are exact in float64.
Node product_of_integers(const Call& call, std::size_t a, std::size_t b, const Node& zero_a,
                         const Node& zero_b) {
  return matmul(centred(call[a], zero_a, -2, DType::float64), centred(call[b], zero_b, -1, DType::float64));
}

std::vector<Node> matrix_product_of_integers(Call& call) {
  return {
      cast(product_of_integers(call, 0, 1, optional_input(call, 2), optional_input(call, 3)), DType::int32)};
}

Node as_float64(const Node& values) { return cast(values, DType::float64); }

// Inputs: a, its scale and zero point, the same for b, scale and zero point of the result.
std::vector<Node> quantised_product(Call& call) {
  const Node product = product_of_integers(call, 0, 3, call[2], call[5]);
  const Node scale = as_float64(call[1]) * as_float64(call[4]) / as_float64(call[6]);
  return {to_uint8(round(product * scale) + as_float64(call[7]))};
}

std::vector<Node> convolution_of_integers(Call& call) {
  const Node x = centred(call[0], optional_input(call, 2), 1, DType::float64);
  const Node weights = centred(call[1], optional_input(call, 3), 0, DType::float64);
  return {cast(convolve(call, x, weights, {}), DType::int32)};
}

// Inputs: x, its scale and zero point, the same for the weights, scale and zero point of the result, and the bias.
std::vector<Node> quantised_convolution(Call& call) {
  const Node x = centred(call[0], call[2], 1, DType::float64);
  const Node weights = centred(call[3], call[5], 0, DType::float64);
  const Node bias = call.has(8) ? as_float64(call[8]) : Node();
  const Node sums = convolve(call, x, weights, bias);
  const Node scale = as_float64(along_axis(call[1], 1, sums.shape())) *
                     as_float64(along_axis(call[4], 1, sums.shape())) / as_float64(call[6]);
  return {to_uint8(round(sums * scale) + as_float64(call[7]))};
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
