#include "core/ops/conv1d.h"

#include "core/ops/axes.h"
#include "core/ops/composed.h"
#include "core/ops/conv2d.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace plexaura {

namespace {

Conv2dOptions with_rows(const Conv1dOptions& options) {
  Conv2dOptions rows{.stride = {1, options.stride},
                     .padding = {0, options.padding},
                     .dilation = {1, options.dilation},
                     .groups = options.groups};
  if (options.padding_end) rows.padding_end = Size2d{0, *options.padding_end};
  return rows;
}

void require_lines(const Operand& x, const Operand& weights) {
  require_that(x.node().shape().rank() == 3, "conv1d", {x, weights},
               "the input needs the axes N, C and L; reshape it");
  require_that(weights.node().shape().rank() == 3, "conv1d", {x, weights},
               "the weights need the axes O, C / groups and K; reshape them");
}

Node without_rows(const Node& y) { return reshape(y, {y.shape()[0], y.shape()[1], y.shape()[3]}); }

}  // namespace

Node conv1d(Operand x, Operand weights, Conv1dOptions options) {
  require_lines(x, weights);
  const Graph::WithOrigin guard = origin_of_caller(x);
  return without_rows(conv2d(unsqueeze(x, 2), unsqueeze(weights, 2), with_rows(options)));
}

Node conv1d(Operand x, Operand weights, Operand bias, Conv1dOptions options) {
  require_lines(x, weights);
  const Graph::WithOrigin guard = origin_of_caller(x);
  return without_rows(conv2d(unsqueeze(x, 2), unsqueeze(weights, 2), bias, with_rows(options)));
}

}  // namespace plexaura
