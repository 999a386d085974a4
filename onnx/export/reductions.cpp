// Ops that combine the elements along axes, and products of matrices.

#include <numeric>

#include "onnx/export/export_table.h"

namespace plexaura::onnx {

namespace {

using Names = std::vector<std::string>;

std::int64_t number_of(DType dtype) { return static_cast<std::int64_t>(element_type_of(dtype)); }

// A value without axes is its own sum. The standard sums no bytes, so that these are summed as int32, which wraps
// around to the same byte.
Names reduced(ExportCall& call, const ExportRow& row) {
  const ExportCall::Integers axes = call.integers("axes");
  if (axes.empty()) return {call.add("Identity", {call[0]})};
  const Attributes keepdims{{"keepdims", std::int64_t{call.flag("keepdims") ? 1 : 0}}};
  if (row.op != "sum" || call.type().dtype != DType::uint8)
    return {call.add(row.onnx, {call[0], call.integers(axes)}, keepdims)};
  const std::string wide = call.add("Cast", {call[0]}, {DType::int32, call.input_type(0).shape},
                                    {{"to", number_of(DType::int32)}});
  const std::string sum =
      call.add("ReduceSum", {wide, call.integers(axes)}, {DType::int32, call.type().shape}, keepdims);
  return {call.add("Cast", {sum}, {{"to", number_of(DType::uint8)}})};
}

Names place_of_largest(ExportCall& call, const ExportRow&) {
  return {call.add(
      "ArgMax", {call[0]},
      {{"axis", call.integers("axes").at(0)}, {"keepdims", std::int64_t{call.flag("keepdims") ? 1 : 0}}})};
}

Names running_sums(ExportCall& call, const ExportRow&) {
  return {call.add("CumSum", {call[0], call.constant(Tensor::scalar(call.integer("axis")))},
                   {{"exclusive", std::int64_t{call.flag("exclusive") ? 1 : 0}},
                    {"reverse", std::int64_t{call.flag("reverse") ? 1 : 0}}})};
}

// Exchanges the last two axes of an input.
std::string transposed(ExportCall& call, std::size_t i) {
  std::vector<std::int64_t> extents = call.input_type(i).shape.extents();
  std::vector<std::int64_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::swap(order.end()[-1], order.end()[-2]);
  std::swap(extents.end()[-1], extents.end()[-2]);
  return call.add("Transpose", {call[i]}, call.with_shape(Shape(extents)), {{"perm", order}});
}

// Two matrices of which one is transposed are a Gemm, which transposes without a copy.
Names matrix_product_of(ExportCall& call, const ExportRow&) {
  const bool transpose_a = call.flag("transpose_a");
  const bool transpose_b = call.flag("transpose_b");
  const bool are_matrices = call.input_type(0).shape.rank() == 2 && call.input_type(1).shape.rank() == 2;
  if (are_matrices && (transpose_a || transpose_b))
    return {call.add(
        "Gemm", {call[0], call[1]},
        {{"transA", std::int64_t{transpose_a ? 1 : 0}}, {"transB", std::int64_t{transpose_b ? 1 : 0}}})};
  const std::string a = transpose_a ? transposed(call, 0) : call[0];
  const std::string b = transpose_b ? transposed(call, 1) : call[1];
  return {call.add("MatMul", {a, b})};
}

Names cross_entropy_of(ExportCall& call, const ExportRow&) {
  // The standard's mean of no samples is not 0 but NaN.
  if (call.input_type(0).shape[0] == 0) call.refuse("softmax_cross_entropy of no samples");
  if (call.has_option("label_smoothing")) call.refuse("softmax_cross_entropy with label smoothing");
  Attributes attributes{{"reduction", call.text("reduction")}};
  if (call.has_option("ignore")) attributes.emplace_back("ignore_index", call.integer("ignore"));
  return {call.add("SoftmaxCrossEntropyLoss", {call[0], call[1]}, std::move(attributes))};
}

Names determinant_of(ExportCall& call, const ExportRow&) {
  if (call.flag("logarithm")) call.refuse("logdet");
  return {call.add("Det", {call[0]})};
}

constexpr ExportRow reduction_export[] = {
    {"argmax", place_of_largest, "ArgMax"},
    {"cumsum", running_sums, "CumSum"},
    {"log_softmax", export_same, "LogSoftmax", {{{"axis", "axis"}}}},
    {"lu_det", determinant_of, "Det"},
    {"matmul", matrix_product_of, "MatMul"},
    {"max", reduced, "ReduceMax"},
    {"mean", reduced, "ReduceMean"},
    {"min", reduced, "ReduceMin"},
    {"softmax", export_same, "Softmax", {{{"axis", "axis"}}}},
    {"softmax_cross_entropy", cross_entropy_of, "SoftmaxCrossEntropyLoss"},
    {"sum", reduced, "ReduceSum"},
};

}  // namespace

std::span<const ExportRow> exported_reductions() { return reduction_export; }

}  // namespace plexaura::onnx
