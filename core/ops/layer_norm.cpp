#include "core/ops/layer_norm.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"
#include "core/ops/binary.h"
#include "core/ops/composed.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

[[noreturn]] void fail(const Operand& x, const Operand& scale, const Operand& shift,
                       const std::string& rule) {
  throw UserError(fmt::format("{}: layer_norm({}, {}, {}): {}", to_string(place_of_caller(x)),
                              to_string(x.node().type()), to_string(scale.node().type()),
                              to_string(shift.node().type()), rule));
}

bool ends_with(const Shape& x, const Shape& last) {
  const auto& all = x.extents();
  const auto& end = last.extents();
  return end.size() <= all.size() && std::equal(end.rbegin(), end.rend(), all.rbegin());
}

void require(const Operand& x, const Operand& scale, const Operand& shift, double epsilon) {
  const DType wide = wide_dtype_of(x);
  const Shape& last = scale.node().shape();
  if (!is_floating(x.node().dtype())) fail(x, scale, shift, "the input must be floating; use cast()");
  if (scale.node().type() != TensorType{wide, last} || shift.node().type() != scale.node().type())
    fail(x, scale, shift, fmt::format("scale and shift must be {} of one shape; use cast()", name_of(wide)));
  if (last.rank() == 0 || !ends_with(x.node().shape(), last))
    fail(x, scale, shift, "scale and shift must have the shape of the last axes of the input, at least one");
  if (!(epsilon > 0)) fail(x, scale, shift, fmt::format("epsilon must be above 0, not {}", epsilon));
}

double epsilon_of(DType dtype) {
  return dtype == DType::float64 ? std::numeric_limits<double>::epsilon()
                                 : static_cast<double>(std::numeric_limits<float>::epsilon());
}

ReduceOptions over_last(std::int64_t axes) {
  ReduceOptions over{.axes = {}, .keepdims = true};
  for (std::int64_t axis = -axes; axis < 0; ++axis) over.axes.push_back(axis);
  return over;
}

// Returns the standardised x in its wide type.
Node standardised(const Operand& x, std::int64_t axes, double epsilon) {
  const auto at = x.where();
  const ReduceOptions over = over_last(axes);
  const Node value = cast(x, wide_dtype_of(x));
  const Node centred = sub({value, at}, {mean({value, at}, over), at});
  const Node variance = mean({square({centred, at}), at}, over);
  const Node inverse = div({1, at}, {sqrt({add({variance, at}, {epsilon, at}), at}), at});
  return mul({centred, at}, {inverse, at});
}

}  // namespace

Node layer_norm(Operand x, Operand scale, Operand shift, LayerNormOptions options) {
  require(x, scale, shift, options.epsilon);
  const auto at = x.where();
  const Node value = standardised(x, scale.node().shape().rank(), options.epsilon);
  return cast({add({mul({value, at}, scale), at}, shift), at}, x.node().dtype());
}

Node standardise(Operand x, std::int64_t axes, LayerNormOptions options) {
  const auto require = [&](bool holds, const std::string& rule) {
    if (!holds)
      throw UserError(fmt::format("{}: standardise({}): {}", to_string(place_of_caller(x)),
                                  to_string(x.node().type()), rule));
  };
  require(is_floating(x.node().dtype()), "the input must be floating; use cast()");
  require(axes >= 1 && axes <= x.node().shape().rank(),
          fmt::format("axes must be at least 1 and at most the input's {}, not {}", x.node().shape().rank(),
                      axes));
  require(options.epsilon > 0, fmt::format("epsilon must be above 0, not {}", options.epsilon));
  return cast({standardised(x, axes, options.epsilon), x.where()}, x.node().dtype());
}

Node rms_norm(Operand x, Operand scale, RmsNormOptions options) {
  const auto require = [&](bool holds, const std::string& rule) {
    require_that(holds, "rms_norm", {x, scale}, rule);
  };
  require_floating_operand("rms_norm", x);
  const DType wide = wide_dtype_of(x);
  const Shape last = scale.node().shape();
  require(scale.node().dtype() == wide, fmt::format("the scale must be {}; use cast()", name_of(wide)));
  require(last.rank() > 0 && ends_with(x.node().shape(), last),
          "the scale must have the last axes of the input, one at least");
  const double epsilon = options.epsilon.value_or(epsilon_of(wide));
  require(epsilon >= 0, fmt::format("epsilon must be at least 0, not {}", epsilon));
  const Graph::WithOrigin guard = origin_of_caller(x);
  const Node value = cast(x.node(), wide);
  const Node inverse = 1 / sqrt(mean(square(value), over_last(last.rank())) + epsilon);
  return cast(value * inverse * scale.node(), x.node().dtype());
}

}  // namespace plexaura
