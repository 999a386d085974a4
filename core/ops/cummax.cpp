#include "core/ops/cummax.h"

#include <algorithm>

#include "core/graph/graph.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/elementwise.h"
#include "core/ops/indexing.h"
#include "core/ops/lines.h"

namespace plexaura {

namespace {

Node places_of_extremes(const Operand& x, std::int64_t axis, bool smallest) {
  axis = counted_from_front(axis, x.node().shape().rank());
  return apply(std::make_shared<ArgCumMax>(ArgCumMaxOptions{axis, smallest}), {x});
}

ValuesAndIndices extremes_so_far(const Operand& x, std::int64_t axis, bool smallest) {
  const Node indices = places_of_extremes(x, axis, smallest);
  return {take_along_axis(x, {indices, x.where()}, axis), indices};
}

}  // namespace

std::vector<TensorType> ArgCumMax::infer(std::span<const TensorType> inputs) const {
  require_inputs(inputs, 1);
  front_axis(options().axis, inputs[0].shape.rank());
  return {{DType::int64, inputs[0].shape}};
}

Node argcummax(Operand x, std::int64_t axis) { return places_of_extremes(x, axis, false); }
Node argcummin(Operand x, std::int64_t axis) { return places_of_extremes(x, axis, true); }
ValuesAndIndices cummax(Operand x, std::int64_t axis) { return extremes_so_far(x, axis, false); }
ValuesAndIndices cummin(Operand x, std::int64_t axis) { return extremes_so_far(x, axis, true); }

namespace {

using namespace portable;

// True if `next`, which comes later, takes the place of `best`.
template <class T>
bool replaces(T next, T best, bool smallest) {
  if (is_nan(next)) return true;
  const auto a = static_cast<Compute<T>>(next);
  const auto b = static_cast<Compute<T>>(best);
  return smallest ? a <= b : a >= b;
}

}  // namespace

void ArgCumMax::compute(const HostCall& call) const {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const Lines lines = Lines::along(result.shape(), options().axis);
  constexpr std::int64_t width = 64;  // neighbouring lines that are searched together
  const std::int64_t pieces = (lines.behind + width - 1) / width;
  dispatch(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    parallel_for(lines.before * pieces, lines.extent * std::min(width, lines.behind),
                 [&](std::int64_t piece) {
                   const std::int64_t column = piece % pieces * width;
                   const std::int64_t first = piece / pieces * lines.extent * lines.behind + column;
                   const T* x = call.inputs[0].as<T>() + first;
                   auto* places = result.as<std::int64_t>() + first;
                   const std::int64_t count = std::min(width, lines.behind - column);
                   T best[width];
                   std::int64_t place[width] = {};
                   std::copy_n(x, count, best);
                   for (std::int64_t i = 0; i < lines.extent; ++i)
                     for (std::int64_t k = 0; k < count; ++k) {
                       const std::int64_t at = i * lines.behind + k;
                       if (replaces(x[at], best[k], options().smallest)) {
                         best[k] = x[at];
                         place[k] = i;
                       }
                       places[at] = place[k];
                     }
                 });
  });
}

}  // namespace plexaura
