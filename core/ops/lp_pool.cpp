#include "core/ops/lp_pool.h"

#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numeric>

#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/pool1d.h"
#include "core/ops/pool2d.h"
#include "core/ops/pool3d.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

// The power, with the gradient 0 at 0.
Node flat_pow(const Node& x, double exponent) {
  if (exponent == 1) return x;
  const Node is_zero = eq(x, 0);
  return where(is_zero, 0, pow(where(is_zero, 1, x), exponent));
}

Node norm_of_windows(std::string_view builder, const Operand& x, double p, std::int64_t elements,
                     const std::function<Node(Operand)>& mean) {
  require_floating_operand(builder, x);
  require_that(std::isfinite(p) && p > 0, builder, {x},
               fmt::format("p must be a finite number above 0, not {}", p));
  const Graph::WithOrigin guard = origin_of_caller(x);
  const Node wide = cast(x, wide_dtype_of(x));
  const Node powers = p == 2 ? square(wide) : flat_pow(abs(wide), p);
  return cast(flat_pow(mean({powers, x.where()}) * static_cast<double>(elements), 1 / p), x.node().dtype());
}

template <class Size>
std::int64_t elements_of(Size kernel) {
  const auto extents = list_of(kernel);
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

Node lp_pool1d(Operand x, LpPool1dOptions options) {
  return norm_of_windows("lp_pool1d", x, options.p, options.kernel, [&](const Operand& powers) {
    return avg_pool1d(powers,
                      {.kernel = options.kernel, .stride = options.stride, .ceil_mode = options.ceil_mode});
  });
}

Node lp_pool2d(Operand x, LpPool2dOptions options) {
  return norm_of_windows("lp_pool2d", x, options.p, elements_of(options.kernel), [&](const Operand& powers) {
    return avg_pool2d(powers,
                      {.kernel = options.kernel, .stride = options.stride, .ceil_mode = options.ceil_mode});
  });
}

Node lp_pool3d(Operand x, LpPool3dOptions options) {
  return norm_of_windows("lp_pool3d", x, options.p, elements_of(options.kernel), [&](const Operand& powers) {
    return avg_pool3d(powers,
                      {.kernel = options.kernel, .stride = options.stride, .ceil_mode = options.ceil_mode});
  });
}

}  // namespace plexaura
