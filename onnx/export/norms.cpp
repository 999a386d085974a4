// Batch norm.

#include <cmath>
#include <optional>

#include "onnx/export/export_table.h"

#include "core/graph/leaf.h"

namespace plexaura::onnx {

namespace {

using Names = std::vector<std::string>;

// The variance and epsilon of a value 1 / sqrt(variance + epsilon).
struct RunningVariance {
  Value variance;
  double epsilon = 0;
};

const NodeRecord* made_by(const Graph& graph, Value value, std::string_view op) {
  const NodeRecord& record = graph.record(value.node);
  return record.op->name() == op ? &record : nullptr;
}

std::optional<double> constant_number(const Graph& graph, Value value) {
  const Leaf* leaf = as_leaf(*graph.record(value.node).op);
  if (leaf == nullptr || leaf->kind() != LeafKind::constant || leaf->value()->elements() != 1)
    return std::nullopt;
  return leaf->value()->to_doubles()[0];
}

// Recognises 1 / sqrt(variance + epsilon), which batch_norm_inference() builds.
std::optional<RunningVariance> running_variance(const Graph& graph, Value inverse) {
  const NodeRecord* quotient = made_by(graph, inverse, "div");
  if (quotient == nullptr || constant_number(graph, quotient->inputs[0]) != 1.0) return std::nullopt;
  const NodeRecord* root = made_by(graph, quotient->inputs[1], "sqrt");
  const NodeRecord* sum = root == nullptr ? nullptr : made_by(graph, root->inputs[0], "add");
  const std::optional<double> epsilon =
      sum == nullptr ? std::nullopt : constant_number(graph, sum->inputs[1]);
  if (!epsilon) return std::nullopt;
  return RunningVariance{sum->inputs[0], *epsilon};
}

// [C] as [C, 1, ...], so that it broadcasts to x.
std::string per_channel_of(ExportCall& call, std::size_t i) {
  const TensorType& type = call.input_type(i);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(call.type().shape.rank() - 1), 1);
  extents[0] = type.shape[0];
  const Shape shape(extents);
  return call.add("Reshape", {call[i], call.shape(shape)}, {type.dtype, shape});
}

// Inputs: x, scale, shift, mean and inverse deviation. With any other moments than running ones the result is scale (x -
// mean) inverse + shift, in the dtype of the moments.
Names normalised_channels(ExportCall& call, const ExportRow&) {
  if (const auto running = running_variance(call.graph(), call.record().inputs[4]))
    return {call.add("BatchNormalization",
                     {call[0], call[1], call[2], call[3], call.name_of(running->variance)},
                     {{"epsilon", static_cast<float>(running->epsilon)}})};
  const DType wide = call.input_type(3).dtype;
  const TensorType type{wide, call.type().shape};
  const bool is_narrow = wide != call.type().dtype;
  const auto convert = [&](const std::string& value, const TensorType& to) {
    return call.add("Cast", {value}, to, {{"to", static_cast<std::int64_t>(element_type_of(to.dtype))}});
  };
  const std::string x = is_narrow ? convert(call[0], type) : call[0];
  const std::string centred = call.add("Sub", {x, per_channel_of(call, 3)}, type);
  const std::string scale = call.add("Mul", {call[1], call[4]}, call.input_type(1));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(type.shape.rank() - 1), 1);
  extents[0] = call.input_type(1).shape[0];
  const Shape channels(extents);
  const std::string factor = call.add("Reshape", {scale, call.shape(channels)}, {wide, channels});
  const std::string scaled = call.add("Mul", {centred, factor}, type);
  const std::string shifted = call.add("Add", {scaled, per_channel_of(call, 2)}, type);
  return {is_narrow ? convert(shifted, call.type()) : shifted};
}

// Makes mean, variance and 1 / sqrt(variance + epsilon) of each channel. Without elements the op makes 0, ONNX does
// not.
Names moments_of(ExportCall& call, const ExportRow&) {
  const TensorType& x = call.input_type(0);
  if (x.shape.elements() == 0) call.refuse("moments of no elements");
  if (x.dtype != call.type().dtype) call.refuse("moments of " + std::string(name_of(x.dtype)));
  ExportCall::Integers axes{0};
  for (std::int64_t axis = 2; axis < x.shape.rank(); ++axis) axes.push_back(axis);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(x.shape.rank()), 1);
  extents[1] = x.shape[1];
  const std::string centre =
      call.add("ReduceMean", {call[0], call.integers(axes)}, call.with_shape(Shape(extents)));
  const std::string centred = call.add("Sub", {call[0], centre}, x);
  const std::string squares = call.add("Mul", {centred, centred}, x);
  const std::string variance =
      call.add("ReduceMean", {squares, call.integers(axes)}, {{"keepdims", std::int64_t{0}}});
  const std::string shifted = call.add("Add", {variance, call.number(call.real("epsilon"))});
  const std::string inverse = call.add("Reciprocal", {call.add("Sqrt", {shifted})});
  return {call.add("Reshape", {centre, call.shape(call.type().shape)}), variance, inverse};
}

constexpr ExportRow norm_export[] = {
    {"moments", moments_of, "ReduceMean"},
    {"normalise", normalised_channels, "BatchNormalization"},
};

}  // namespace

std::span<const ExportRow> exported_norms() { return norm_export; }

}  // namespace plexaura::onnx
