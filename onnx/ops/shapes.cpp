// Ops that change shapes, move elements, or make values from shapes.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

#include "onnx/format/tensor_data.h"
#include "onnx/ops/matrices.h"
#include "onnx/ops/table.h"

#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura::onnx {

namespace {

using Integers = std::vector<std::int64_t>;

// The axes of a node are an attribute in older versions, and input `i` in newer ones.
Integers axes_of_node(Call& call, std::size_t i) {
  return call.has(i) ? call.input_integers(i) : call.integers("axes");
}

// Each axis may take a node of the graph.
void require_few_axes(const Integers& axes) {
  if (axes.size() > most_axes)
    throw UserError(fmt::format("it names {} axes; at most {} are supported", axes.size(), most_axes));
}

std::vector<Node> constant(Call& call) {
  if (auto tensor = call.tensor("value")) return {call.graph().constant(std::move(*tensor))};
  const auto scalar_or_list = [&]<class T>(std::string_view one, std::vector<T> list, T value) {
    if (call.has_attribute(one)) return call.graph().constant(Tensor::scalar(value));
    const auto count = static_cast<std::int64_t>(list.size());
    return call.graph().constant(Tensor::of({count}, list));
  };
  if (call.has_attribute("value_float") || call.has_attribute("value_floats"))
    return {scalar_or_list("value_float", call.reals("value_floats"),
                           static_cast<float>(call.real("value_float", 0)))};
  if (call.has_attribute("value_int") || call.has_attribute("value_ints"))
    return {scalar_or_list("value_int", call.integers("value_ints"), call.integer("value_int", 0))};
  throw UserError("it has no value of a supported kind; there are tensors, numbers and lists of numbers");
}

std::vector<Node> constant_of_shape(Call& call) {
  const Tensor value = call.tensor("value").value_or(Tensor::of({1}, std::vector{0.0F}));
  const Node element = call.graph().constant(value.reshaped({}));
  return {broadcast_to(element, Shape(call.input_integers(0)))};
}

Node integers_node(Graph& graph, const Integers& values) {
  return graph.constant(Tensor::of({static_cast<std::int64_t>(values.size())}, values));
}

std::vector<Node> shape_of(Call& call) {
  const Integers& extents = call[0].shape().extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = place(call.integer("start", 0));
  const std::int64_t end = std::max(start, place(call.integer("end", rank)));
  return {integers_node(call.graph(), Integers(extents.begin() + start, extents.begin() + end))};
}

std::vector<Node> size_of_value(Call& call) {
  return {call.graph().constant(Tensor::scalar(call[0].shape().elements()))};
}

std::vector<Node> reshape_to(Call& call) {
  Integers extents = call.input_integers(1);
  if (!call.flag("allowzero", false)) {
    const Shape& from = call[0].shape();
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (extents[i] == 0 && static_cast<std::int64_t>(i) < from.rank())
        extents[i] = from[static_cast<std::int64_t>(i)];
  }
  return {reshape(call[0], std::move(extents))};
}

std::vector<Node> flatten_at(Call& call) {
  const Shape& shape = call[0].shape();
  std::int64_t axis = call.integer("axis", 1);
  if (axis < -shape.rank() || axis > shape.rank())
    throw UserError(fmt::format("there is no axis {} in {}", axis, to_string(shape)));
  if (axis < 0) axis += shape.rank();
  return {as_matrix(call[0], axis)};
}

std::vector<Node> squeeze_axes(Call& call) {
  Integers axes = axes_of_node(call, 1);
  const Shape& shape = call[0].shape();
  for (const std::int64_t axis : axes)
    if (shape[normalise_axis(axis, shape.rank())] != 1)
      throw UserError(fmt::format("axis {} of {} does not have the extent 1", axis, to_string(shape)));
  return {squeeze(call[0], std::move(axes))};
}

std::vector<Node> unsqueeze_axes(Call& call) {
  Integers axes = axes_of_node(call, 1);
  const auto rank = call[0].shape().rank() + static_cast<std::int64_t>(axes.size());
  require_few_axes(axes);
  for (std::int64_t& axis : axes) axis = normalise_axis(axis, rank);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end())
    throw UserError(fmt::format("its axes {} must differ", fmt::join(axes, ", ")));
  Node result = call[0];
  for (const std::int64_t axis : axes) result = unsqueeze(result, axis);
  return {result};
}

std::vector<Node> transpose_axes(Call& call) {
  Integers axes(static_cast<std::size_t>(call[0].shape().rank()));
  std::iota(axes.rbegin(), axes.rend(), 0);
  return {permute(call[0], call.integers("perm", axes))};
}

std::vector<Node> expand(Call& call) {
  return {broadcast_to(call[0], broadcast(call[0].shape(), Shape(call.input_integers(1))))};
}

std::vector<Node> tile_of(Call& call) { return {tile(call[0], call.input_integers(1))}; }

std::vector<Node> concat_of(Call& call) {
  std::vector<Operand> parts;
  for (std::size_t i = 0; i < call.inputs(); ++i) parts.emplace_back(call[i]);
  return {concat(std::move(parts), call.integer("axis", 1))};
}

// Returns the sizes of `count` equal parts. From version 18 on the last part may be smaller.
Integers equal_parts(std::int64_t extent, std::int64_t count, std::int64_t version) {
  if (count < 1) throw UserError("it has no outputs");
  const std::int64_t size = extent / count + (extent % count == 0 ? 0 : 1);
  Integers sizes(static_cast<std::size_t>(count), size);
  sizes.back() = extent - size * (count - 1);
  if (sizes.back() < 0 || (version < 18 && sizes.back() != size))
    throw UserError(fmt::format(
        "an axis of {} elements cannot be divided into {} equal parts; name their sizes", extent, count));
  return sizes;
}

std::vector<Node> split_of(Call& call) {
  const Shape& shape = call[0].shape();
  const std::int64_t axis = normalise_axis(call.integer("axis", 0), shape.rank());
  const auto outputs = static_cast<std::int64_t>(call.outputs());
  Integers sizes = call.has(1) ? call.input_integers(1) : call.integers("split");
  const std::int64_t count =
      sizes.empty() ? call.integer("num_outputs", outputs) : static_cast<std::int64_t>(sizes.size());
  if (count != outputs)
    throw UserError(fmt::format("it divides into {} parts, but has {} outputs", count, outputs));
  if (sizes.empty()) sizes = equal_parts(shape[axis], count, call.version());
  return split_with_sizes(call[0], std::move(sizes), axis);
}

// The standard's start and end are clamped to the axis. Those of slice() need not be, but have another meaning
// where they are below its beginning.
SliceOptions slice_options(std::int64_t axis, std::int64_t extent, std::int64_t start, std::int64_t end,
                           std::int64_t step) {
  if (step == 0) throw UserError("a step of a slice is 0");
  const std::int64_t lowest = step > 0 ? 0 : -1;
  const std::int64_t highest = step > 0 ? extent : extent - 1;
  const auto place = [&](std::int64_t at, std::int64_t low) {
    return std::clamp(at < 0 ? at + extent : at, low, std::max(low, highest));
  };
  SliceOptions options{.axis = axis, .start = place(start, 0), .step = step};
  const std::int64_t stop = place(end, lowest);
  if (stop >= 0) options.stop = stop;
  return options;
}

Node slice_axes(const Node& x, const Integers& starts, const Integers& ends, Integers axes, Integers steps) {
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw UserError("its starts, ends, axes and steps differ in number");
  require_few_axes(axes);
  Node result = x;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t axis = normalise_axis(axes[i], x.shape().rank());
    result = slice(result, slice_options(axis, x.shape()[axis], starts[i], ends[i], steps[i]));
  }
  return result;
}

std::vector<Node> slice_by_attributes(Call& call) {
  const Integers starts = call.integers("starts");
  const Integers ends = call.integers("ends");
  return {slice_axes(call[0], starts, ends, call.integers("axes"), {})};
}

std::vector<Node> slice_by_inputs(Call& call) {
  return {slice_axes(call[0], call.input_integers(1), call.input_integers(2), call.optional_integers(3),
                     call.optional_integers(4))};
}

PadMode pad_mode(const std::string& name) {
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "edge") return PadMode::replicate;
  if (name == "wrap") return PadMode::circular;
  throw UserError(fmt::format("mode must be constant, reflect, edge or wrap, not '{}'", name));
}

constexpr std::int64_t most_pads = std::int64_t{1} << 40;  // so that no sum of extents is too large

// Adds elements at the ends of axes; negative numbers remove them.
Node pad_axes(const Node& x, const Integers& pads, Integers axes, PadOptions options) {
  if (axes.empty()) {
    axes.resize(static_cast<std::size_t>(x.shape().rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (pads.size() != 2 * axes.size())
    throw UserError(fmt::format("{} pads do not fit {} axes; each axis has two", pads.size(), axes.size()));
  require_few_axes(axes);
  for (const std::int64_t count : pads)
    if (count < -most_pads || count > most_pads)
      throw UserError(fmt::format("pads must be from {} to {}, not {}", -most_pads, most_pads, count));
  Node result = x;
  std::vector<AxisPadding> widths;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = normalise_axis(axes[i], x.shape().rank());
    const std::int64_t before = pads[i];
    const std::int64_t after = pads[i + axes.size()];
    if (before < 0 || after < 0) {
      const std::int64_t extent = result.shape()[axis];
      const std::int64_t first = std::min(extent, std::max<std::int64_t>(0, -before));
      const std::int64_t stop = std::max(first, extent - std::max<std::int64_t>(0, -after));
      result = slice(result, {.axis = axis, .start = first, .stop = stop});
    }
    if (before > 0 || after > 0)
      widths.push_back({axis, std::max<std::int64_t>(0, before), std::max<std::int64_t>(0, after)});
  }
  return widths.empty() ? result : pad(result, widths, options);
}

std::vector<Node> pad_by_attributes(Call& call) {
  const Integers pads = call.integers("pads");
  const PadMode mode = pad_mode(call.text("mode", "constant"));
  return {pad_axes(call[0], pads, {}, {.mode = mode, .value = call.real("value", 0)})};
}

std::vector<Node> pad_by_inputs(Call& call) {
  const PadMode mode = pad_mode(call.text("mode", "constant"));
  const double value = mode == PadMode::constant && call.has(2) ? call.number(2) : 0;
  return {
      pad_axes(call[0], call.input_integers(1), call.optional_integers(3), {.mode = mode, .value = value})};
}

// [N, C, H, W] -> [N, C / block^2, H block, W block].
std::vector<Node> depth_to_space(Call& call) {
  const Node x = call[0];
  const std::int64_t block = call.integer("blocksize", 1);
  const Shape& from = x.shape();
  if (from.rank() != 4 || block < 1 || block > from[1] || from[1] % (block * block) != 0)
    throw UserError(fmt::format("blocks of {} do not fit {}", block, to_string(from)));
  const std::int64_t channels = from[1] / (block * block);
  const std::string mode = call.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw UserError(fmt::format("mode must be DCR or CRD, not '{}'", mode));
  const bool columns_last = mode == "CRD";
  const Node parts = columns_last ? reshape(x, {from[0], channels, block, block, from[2], from[3]})
                                  : reshape(x, {from[0], block, block, channels, from[2], from[3]});
  const Node moved = permute(parts, columns_last ? Integers{0, 1, 4, 2, 5, 3} : Integers{0, 3, 4, 1, 5, 2});
  return {reshape(moved, {from[0], channels, from[2] * block, from[3] * block})};
}

std::vector<Node> space_to_depth(Call& call) {
  const Node x = call[0];
  const std::int64_t block = call.integer("blocksize", 1);
  const Shape& from = x.shape();
  if (from.rank() != 4 || block < 1 || from[2] % block != 0 || from[3] % block != 0)
    throw UserError(fmt::format("blocks of {} do not fit {}", block, to_string(from)));
  const std::int64_t rows = from[2] / block;
  const std::int64_t columns = from[3] / block;
  const Node parts = reshape(x, {from[0], from[1], rows, block, columns, block});
  return {reshape(permute(parts, {0, 3, 5, 1, 2, 4}), {from[0], from[1] * block * block, rows, columns})};
}

std::vector<Node> range(Call& call) {
  const double start = call.number(0);
  const double step = call.number(2);
  if (step == 0) throw UserError("the step of a range is 0");
  const double count = std::max(0.0, std::ceil((call.number(1) - start) / step));
  if (!(count < 1e18)) throw UserError(fmt::format("a range of {} elements is too long", count));
  const Node places = counted(call.graph(), static_cast<std::int64_t>(count));
  return {cast(places, call[0].dtype()) * reshape(call[2], Integers{}) + reshape(call[0], Integers{})};
}

std::vector<Node> eye_like(Call& call) {
  const Shape& shape = call[0].shape();
  if (shape.rank() != 2) throw UserError(fmt::format("a matrix is needed, not {}", to_string(shape)));
  const std::int64_t type = call.integer("dtype", 0);
  const DType dtype = type == 0 ? call[0].dtype() : dtype_of(static_cast<ElementType>(type));
  const Node rows = reshape(counted(call.graph(), shape[0]), {shape[0], 1});
  return {cast(eq(rows + call.integer("k", 0), counted(call.graph(), shape[1])), dtype)};
}

std::vector<Node> triangle(Call& call) {
  const std::int64_t diagonal = call.has(1) ? call.whole_number(1) : 0;
  return {call.flag("upper", true) ? triu(call[0], diagonal) : tril(call[0], diagonal)};
}

// Cuts or pads axes to extents, equally at both ends. If the difference is odd, the end gets one more.
std::vector<Node> crop_or_pad_centre(Call& call) {
  const std::int64_t rank = call[0].shape().rank();
  Integers axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  axes = call.integers("axes", axes);
  const Integers extents = call.input_integers(1);
  if (extents.size() != axes.size())
    throw UserError(fmt::format("{} extents do not fit {} axes", extents.size(), axes.size()));
  Node result = call[0];
  std::vector<AxisPadding> widths;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = normalise_axis(axes[i], rank);
    const std::int64_t extent = result.shape()[axis];
    if (extents[i] < 0) throw UserError(fmt::format("the extent {} must not be negative", extents[i]));
    if (extents[i] < extent) {
      const std::int64_t start = (extent - extents[i]) / 2;
      result = slice(result, {.axis = axis, .start = start, .stop = start + extents[i]});
    } else {
      const std::int64_t before = (extents[i] - extent) / 2;
      widths.push_back({axis, before, extents[i] - extent - before});
    }
  }
  return {pad(result, widths)};
}

constexpr Row rows_of_shapes[] = {
    {"CenterCropPad", 18, crop_or_pad_centre},
    {"Concat", 4, concat_of},
    {"Constant", 1, constant},
    {"ConstantOfShape", 9, constant_of_shape},
    {"DepthToSpace", 1, depth_to_space},
    {"Expand", 8, expand},
    {"EyeLike", 9, eye_like},
    {"Flatten", 1, flatten_at},
    {"Pad", 2, pad_by_attributes},
    {"Pad", 11, pad_by_inputs},
    {"Range", 11, range},
    {"Reshape", 5, reshape_to},
    {"Shape", 1, shape_of},
    {"Size", 1, size_of_value},
    {"Slice", 1, slice_by_attributes},
    {"Slice", 10, slice_by_inputs},
    {"SpaceToDepth", 1, space_to_depth},
    {"Split", 2, split_of},
    {"Squeeze", 1, squeeze_axes},
    {"Tile", 6, tile_of},
    {"Transpose", 1, transpose_axes},
    {"Trilu", 14, triangle},
    {"Unsqueeze", 1, unsqueeze_axes},
};

}  // namespace

std::span<const Row> shape_rows() { return rows_of_shapes; }

}  // namespace plexaura::onnx
