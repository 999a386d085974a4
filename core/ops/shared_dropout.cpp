#include "core/ops/shared_dropout.h"

#include <string_view>

#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

// Draws once for each element of the first `drawn` axes.
Node dropped(std::string_view builder, const Operand& x, std::int64_t drawn, const DropoutOptions& options) {
  require_floating_operand(builder, x);
  const Node value = x.node();
  const Graph::WithOrigin guard = origin_of_caller(x);
  std::vector<std::int64_t> extents(static_cast<std::size_t>(value.shape().rank()), 1);
  for (std::int64_t axis = 0; axis < drawn; ++axis)
    extents[static_cast<std::size_t>(axis)] = value.shape()[axis];
  const Node ones = broadcast_to({Operand(1).node_like(value), x.where()}, Shape(std::move(extents)));
  const Node kept = dropout({ones, x.where()}, options);
  return same_value(kept, ones) ? value : value * kept;
}

Node dropped_channels(std::string_view builder, const Operand& x, std::int64_t rank, const char* axes,
                      const DropoutOptions& options) {
  require_that(x.node().shape().rank() == rank, builder, {x},
               std::string("needs the axes ") + axes + "; reshape the value");
  return dropped(builder, x, 2, options);
}

}  // namespace

Node dropout1d(Operand x, DropoutOptions options) {
  return dropped_channels("dropout1d", x, 3, "N, C and L", options);
}

Node dropout2d(Operand x, DropoutOptions options) {
  return dropped_channels("dropout2d", x, 4, "N, C, H and W", options);
}

Node dropout3d(Operand x, DropoutOptions options) {
  return dropped_channels("dropout3d", x, 5, "N, C, D, H and W", options);
}

Node drop_path(Operand x, DropoutOptions options) {
  require_that(x.node().shape().rank() >= 1, "drop_path", {x}, "needs an axis of samples; reshape the value");
  return dropped("drop_path", x, 1, options);
}

}  // namespace plexaura
