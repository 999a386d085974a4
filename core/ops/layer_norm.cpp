#include "core/ops/layer_norm.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/error.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace plexaura {

namespace {

[[noreturn]] void fail(const Operand& x, const Operand& scale, const Operand& shift,
                       const std::string& rule) {
  throw UserError(fmt::format("{}: layer_norm({}, {}, {}): {}", to_string(Origin::at(x.where())),
                              to_string(x.node().type()), to_string(scale.node().type()),
                              to_string(shift.node().type()), rule));
}

bool ends_with(const Shape& x, const Shape& last) {
  const auto& all = x.extents();
  const auto& end = last.extents();
  return end.size() <= all.size() && std::equal(end.rbegin(), end.rend(), all.rbegin());
}

void require(const Operand& x, const Operand& scale, const Operand& shift, DType wide, double epsilon) {
  const Shape& last = scale.node().shape();
  if (!is_floating(x.node().dtype())) fail(x, scale, shift, "the input must be floating; use cast()");
  if (scale.node().type() != TensorType{wide, last} || shift.node().type() != scale.node().type())
    fail(x, scale, shift, fmt::format("scale and shift must be {} of one shape; use cast()", name_of(wide)));
  if (last.rank() == 0 || !ends_with(x.node().shape(), last))
    fail(x, scale, shift, "scale and shift must have the last axes of the input, one at least");
  if (!(epsilon > 0)) fail(x, scale, shift, fmt::format("epsilon must be above 0, not {}", epsilon));
}

}  // namespace

Node layer_norm(Operand x, Operand scale, Operand shift, LayerNormOptions options) {
  const DType wide = x.node().dtype() == DType::float64 ? DType::float64 : DType::float32;
  require(x, scale, shift, wide, options.epsilon);
  const auto at = x.where();
  ReduceOptions over{.axes = {}, .keepdims = true};
  for (std::int64_t axis = -scale.node().shape().rank(); axis < 0; ++axis) over.axes.push_back(axis);
  const Node value = cast(x, wide);
  const Node centred = sub({value, at}, {mean({value, at}, over), at});
  const Node variance = mean({square({centred, at}), at}, over);
  const Node inverse = div({1, at}, {sqrt({add({variance, at}, {options.epsilon, at}), at}), at});
  const Node scaled = mul({mul({centred, at}, {inverse, at}), at}, scale);
  return cast({add({scaled, at}, shift), at}, x.node().dtype());
}

}  // namespace plexaura
