#include "core/ops/pool1d.h"

#include "core/ops/axes.h"
#include "core/ops/elementwise.h"
#include "core/ops/pool2d.h"

namespace plexaura {

namespace {

Operand with_row(std::string_view builder, const Operand& x) {
  require_that(x.node().shape().rank() == 3, builder, {x}, "needs the axes N, C and L; reshape the value");
  return {unsqueeze(x, 2), x.where()};
}

}  // namespace

Node max_pool1d(Operand x, MaxPool1dOptions options) {
  const Node y =
      max_pool2d(with_row("max_pool1d", x), {.kernel = {1, options.kernel},
                                             .stride = Size2d{1, options.stride.value_or(options.kernel)},
                                             .padding = {0, options.padding},
                                             .ceil_mode = options.ceil_mode});
  return squeeze({y, x.where()}, {2});
}

Node avg_pool1d(Operand x, AvgPool1dOptions options) {
  const Node y =
      avg_pool2d(with_row("avg_pool1d", x), {.kernel = {1, options.kernel},
                                             .stride = Size2d{1, options.stride.value_or(options.kernel)},
                                             .padding = {0, options.padding},
                                             .count_include_pad = options.count_include_pad,
                                             .ceil_mode = options.ceil_mode});
  return squeeze({y, x.where()}, {2});
}

}  // namespace plexaura
