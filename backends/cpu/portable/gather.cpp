#include "core/ops/gather.h"

#include <algorithm>
#include <fmt/format.h>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// How a value of [before, extent, behind] elements and one of [before, count, behind] lie beside `count` indices of
// the axis between.
struct Rows {
  const std::int64_t* indices;
  std::int64_t count;
  std::int64_t before;
  std::int64_t extent;
  std::int64_t behind;
};

Rows rows_of(const HostView& indices, const Shape& whole, std::int64_t axis) {
  const std::int64_t behind = stride_of(whole, axis);
  std::int64_t before = 1;
  for (std::int64_t i = 0; i < axis; ++i) before *= whole[i];
  return {indices.as<std::int64_t>(), indices.elements(), before, whole[axis], behind};
}

void require_inside(const Rows& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i)
    if (rows.indices[i] < 0 || rows.indices[i] >= rows.extent)
      throw UserError(
          fmt::format("element {} of the indices is {}; an index must be from 0 to {}, one less than the "
                      "extent of the "
                      "axis: check the indices before they are fed",
                      i, rows.indices[i], rows.extent - 1));
}

}  // namespace

void portable_gather(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const Shape& x = call.inputs[0].shape();
  const Rows rows =
      rows_of(call.inputs[1], x, normalise_axis(op_cast<Gather>(call.op).options().axis, x.rank()));
  require_inside(rows);
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    parallel_for(rows.before * rows.count, rows.behind, [&](std::int64_t row) {
      const std::int64_t from = row / rows.count * rows.extent + rows.indices[row % rows.count];
      std::copy_n(src + from * rows.behind, rows.behind, dst + row * rows.behind);
    });
  });
}

// Each thread has columns of its own, and adds to them in the order of the indices.
void portable_gather_grad(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const Rows rows = rows_of(call.inputs[1], result.shape(), op_cast<GatherGrad>(call.op).options().axis);
  require_inside(rows);
  constexpr std::int64_t width = 64;
  const std::int64_t pieces = (rows.behind + width - 1) / width;
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = result.as<T>();
    parallel_for(rows.before * pieces, (rows.count + rows.extent) * width, [&](std::int64_t work) {
      const std::int64_t outer = work / pieces;
      const std::int64_t begin = work % pieces * width;
      const std::int64_t length = std::min(width, rows.behind - begin);
      T* to = dst + outer * rows.extent * rows.behind + begin;
      const T* from = src + outer * rows.count * rows.behind + begin;
      for (std::int64_t row = 0; row < rows.extent; ++row) std::fill_n(to + row * rows.behind, length, T(0));
      for (std::int64_t i = 0; i < rows.count; ++i) {
        T* sum = to + rows.indices[i] * rows.behind;
        const T* addend = from + i * rows.behind;
        for (std::int64_t k = 0; k < length; ++k)
          sum[k] = T(static_cast<Compute<T>>(sum[k]) + static_cast<Compute<T>>(addend[k]));
      }
    });
  });
}

}  // namespace plexaura
