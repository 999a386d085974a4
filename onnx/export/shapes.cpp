// Ops that move elements and compute nothing.

#include <limits>
#include <numeric>

#include "onnx/export/export_table.h"

#include "core/ops/slice.h"

namespace plexaura::onnx {

namespace {

using Names = std::vector<std::string>;

// Without allowzero, an extent of 0 would stand for the extent of the input.
Names reshaped(ExportCall& call, const ExportRow&) {
  const Shape& shape = call.type().shape;
  const std::string extents = call.shape(shape);
  if (shape.elements() != 0) return {call.add("Reshape", {call[0], extents})};
  return {call.add("Reshape", {call[0], extents}, {{"allowzero", std::int64_t{1}}})};
}

Names repeated(ExportCall& call, const ExportRow&) {
  return {call.add("Expand", {call[0], call.shape(call.type().shape)})};
}

Names sliced(ExportCall& call, const ExportRow&) {
  const SliceOptions& options = op_cast<SliceOp>(*call.record().op).options();
  const Shape& shape = call.input_type(0).shape;
  const SliceIndices indices =
      indices_of(options, shape.rank(), shape[normalise_axis(options.axis, shape.rank())]);
  // A slice of the whole axis would name its extent, which may be the number of samples.
  if (call.input_type(0) == call.type() && indices.step > 0) return {call.add("Identity", {call[0]})};
  const std::int64_t stop = indices.start + indices.count * indices.step;
  const std::int64_t before_all = std::numeric_limits<std::int64_t>::min() + 1;
  return {call.add("Slice",
                   {call[0], call.integers({indices.start}), call.integers({stop < 0 ? before_all : stop}),
                    call.integers({indices.axis}), call.integers({indices.step})})};
}

// Gathers the elements of each window along the axis, and then moves them to the last axis.
Names windows(ExportCall& call, const ExportRow&) {
  const std::int64_t axis = call.integer("axis");
  const std::int64_t size = call.integer("size");
  const std::int64_t count = call.type().shape[axis];
  std::vector<std::int64_t> places;
  for (std::int64_t window = 0; window < count; ++window)
    for (std::int64_t i = 0; i < size; ++i)
      places.push_back(window * call.integer("step") + i * call.integer("dilation"));
  std::vector<std::int64_t> extents = call.type().shape.extents();
  extents.pop_back();
  extents.insert(extents.begin() + axis + 1, size);
  const std::string gathered = call.add("Gather", {call[0], call.constant(Tensor::of({count, size}, places))},
                                        call.with_shape(Shape(extents)), {{"axis", axis}});
  std::vector<std::int64_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  return {call.add("Transpose", {gathered}, {{"perm", order}})};
}

constexpr ExportRow shape_export[] = {
    {"broadcast_to", repeated, "Expand"},
    {"concat", export_same, "Concat", {{{"axis", "axis"}}}},
    {"permute", export_same, "Transpose", {{{"axes", "perm"}}}},
    {"reshape", reshaped, "Reshape"},
    {"slice", sliced, "Slice"},
    {"unfold", windows, "Gather"},
};

}  // namespace

std::span<const ExportRow> exported_shapes() { return shape_export; }

}  // namespace plexaura::onnx
