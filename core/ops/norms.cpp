#include "core/ops/norms.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/layer_norm.h"
#include "core/ops/pool2d.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// Checks the input. While the result lives, new nodes have the caller's line as their origin.
Graph::WithOrigin norm_of(std::string_view builder, const Operand& x, std::int64_t least_rank) {
  require_floating_operand(builder, x);
  require_that(x.node().shape().rank() >= least_rank, builder, {x},
               fmt::format("needs {} axes or more; reshape the value", least_rank));
  return origin_of_caller(x);
}

// Brings each group to mean 0 and variance 1, in the wide type.
Node grouped(std::string_view builder, const Operand& x, std::int64_t groups, double epsilon) {
  const Node value = x.node();
  const Shape shape = value.shape();
  require_that(groups >= 1 && shape[1] % groups == 0, builder, {x},
               fmt::format("the {} channels must be divisible by the number of groups, 1 or more (here {})",
                           shape[1], groups));
  require_that(epsilon > 0, builder, {x}, fmt::format("epsilon must be above 0, not {}", epsilon));
  std::int64_t elements = shape[1] / groups;
  for (std::int64_t axis = 2; axis < shape.rank(); ++axis) elements *= shape[axis];
  const Node rows = reshape(cast(value, wide_dtype_of(value)), {shape[0], groups, elements});
  return reshape(standardise(rows, 1, {.epsilon = epsilon}), shape.extents());
}

Node of_channels(std::string_view builder, const Operand& x, const Operand& values) {
  const Shape shape = x.node().shape();
  const DType wide = wide_dtype_of(x);
  require_that(
      values.node().type() == TensorType{wide, Shape{shape[1]}}, builder, {x, values},
      fmt::format("scale and shift must be {} with one element for each of the {} channels; use cast()",
                  name_of(wide), shape[1]));
  std::vector<std::int64_t> extents(static_cast<std::size_t>(shape.rank() - 1), 1);
  extents[0] = shape[1];
  return reshape(values, std::move(extents));
}

Node scaled_and_shifted(std::string_view builder, const Operand& x, const Node& y, const Operand& scale,
                        const Operand& shift) {
  return cast(y * of_channels(builder, x, scale) + of_channels(builder, x, shift), x.node().dtype());
}

// The mean square of `size` neighbouring channels, for images of one row per channel.
Node mean_of_neighbours(const Node& squares, std::int64_t size) {
  const std::int64_t channels = squares.shape()[2];
  const Node means =
      avg_pool2d(squares, {.kernel = {size, 1}, .stride = Size2d{1}, .padding = {size / 2, 0}});
  return size % 2 == 1 ? means : slice(means, {.axis = 2, .stop = channels});
}

}  // namespace

Node group_norm(Operand x, std::int64_t groups, Operand scale, Operand shift, GroupNormOptions options) {
  const Graph::WithOrigin guard = norm_of("group_norm", x, 2);
  return scaled_and_shifted("group_norm", x, grouped("group_norm", x, groups, options.epsilon), scale, shift);
}

Node group_norm(Operand x, std::int64_t groups, GroupNormOptions options) {
  const Graph::WithOrigin guard = norm_of("group_norm", x, 2);
  return cast(grouped("group_norm", x, groups, options.epsilon), x.node().dtype());
}

Node instance_norm(Operand x, Operand scale, Operand shift, GroupNormOptions options) {
  const Graph::WithOrigin guard = norm_of("instance_norm", x, 3);
  const Node y = grouped("instance_norm", x, std::max<std::int64_t>(1, x.node().shape()[1]), options.epsilon);
  return scaled_and_shifted("instance_norm", x, y, scale, shift);
}

Node instance_norm(Operand x, GroupNormOptions options) {
  const Graph::WithOrigin guard = norm_of("instance_norm", x, 3);
  const Node y = grouped("instance_norm", x, std::max<std::int64_t>(1, x.node().shape()[1]), options.epsilon);
  return cast(y, x.node().dtype());
}

Node local_response_norm(Operand x, std::int64_t size, LocalResponseNormOptions options) {
  const Graph::WithOrigin guard = norm_of("local_response_norm", x, 3);
  require_that(size >= 1, "local_response_norm", {x},
               fmt::format("the number of neighbouring channels must be 1 or more, not {}", size));
  require_that(options.k > 0, "local_response_norm", {x},
               fmt::format("k must be above 0, not {}", options.k));
  const Node value = cast(x.node(), wide_dtype_of(x));
  const Shape shape = value.shape();
  if (shape.elements() == 0) return x.node();
  const Node rows = reshape(square(value), {shape[0], 1, shape[1], -1});
  const Node means = reshape(mean_of_neighbours(rows, size), shape.extents());
  return cast(value / pow(options.k + options.alpha * means, options.beta), x.node().dtype());
}

}  // namespace plexaura
