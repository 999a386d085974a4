#include "core/ops/adaptive_pool.h"

#include <fmt/format.h>
#include <numeric>

#include "core/ops/axes.h"
#include "core/ops/elementwise.h"
#include "core/ops/pool2d.h"
#include "core/ops/pool3d.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

void require_image(std::string_view builder, const Operand& x, Size2d output) {
  require_that(x.node().shape().rank() == 4, builder, {x}, "needs the axes N, C, H and W; reshape the value");
  require_that(output.h > 0 && output.w > 0, builder, {x},
               fmt::format("the output must have an extent of 1 or more along each axis (here {} x {})",
                           output.h, output.w));
}

// Returns the size of the windows if all have the same size and do not overlap; otherwise nothing.
std::optional<Size2d> equal_windows(const Operand& x, Size2d output) {
  const Size2d input = spatial(x.node().shape());
  if (input.h < 1 || input.w < 1 || input.h % output.h != 0 || input.w % output.w != 0) return std::nullopt;
  return Size2d{input.h / output.h, input.w / output.w};
}

Operand with_row(std::string_view builder, const Operand& x) {
  require_that(x.node().shape().rank() == 3, builder, {x}, "needs the axes N, C and L; reshape the value");
  return {unsqueeze(x, 2), x.where()};
}

Node without_axis_2(const Node& y, const Operand& x) { return squeeze({y, x.where()}, {2}); }

Operand as_volume(const Operand& x) { return {unsqueeze(x, 2), x.where()}; }

}  // namespace

Node adaptive_avg_pool1d(Operand x, std::int64_t output) {
  return without_axis_2(adaptive_avg_pool2d(with_row("adaptive_avg_pool1d", x), {1, output}), x);
}

Node adaptive_max_pool1d(Operand x, std::int64_t output) {
  return without_axis_2(adaptive_max_pool2d(with_row("adaptive_max_pool1d", x), {1, output}), x);
}

Node adaptive_avg_pool2d(Operand x, Size2d output) {
  require_image("adaptive_avg_pool2d", x, output);
  if (const auto kernel = equal_windows(x, output)) return avg_pool2d(x, {.kernel = *kernel});
  return without_axis_2(adaptive_avg_pool3d(as_volume(x), with_depth(output, 1)), x);
}

Node adaptive_max_pool2d(Operand x, Size2d output) {
  require_image("adaptive_max_pool2d", x, output);
  const auto kernel = equal_windows(x, output);
  const bool is_small = kernel && kernel->h <= 255 / kernel->w;
  if (is_small) return max_pool2d(x, {.kernel = *kernel});
  return without_axis_2(adaptive_max_pool3d(as_volume(x), with_depth(output, 1)), x);
}

Node global_max_pool(Operand x) {
  const std::int64_t rank = x.node().shape().rank();
  require_that(rank >= 3, "global_max_pool", {x},
               "needs the axes N, C and at least one more; reshape the value");
  std::vector<std::int64_t> axes(static_cast<std::size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return max(x, {.axes = std::move(axes)});
}

}  // namespace plexaura
