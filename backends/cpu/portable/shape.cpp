#include "core/ops/shape.h"

#include <cstring>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"

namespace plexaura {

namespace {

using namespace portable;

// Copies through a walk whose operand 0 is the source.
void copy(const HostCall& call, const StridedWalk<1>& walk) {
  const std::int64_t step = walk.run_strides()[0];
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    parallel_pieces(walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
      walk.runs(begin, end, [&](std::int64_t first, const auto& offsets, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) dst[first + i] = src[offsets[0] + i * step];
      });
    });
  });
}

}  // namespace

void portable_reshape(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.data == call.inputs[0].data) return;
  std::memcpy(result.data, call.inputs[0].data, static_cast<std::size_t>(result.type->bytes()));
}

void portable_broadcast_to(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  copy(call, broadcast_walk(call.outputs[0].shape(), call.inputs[0].shape()));
}

void portable_permute(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const auto& axes = op_cast<Permute>(call.op).options().axes;
  const Shape& from = call.inputs[0].shape();
  StridedWalk<1> walk(call.outputs[0].elements());
  for (const std::int64_t axis : axes) walk.add_axis(from[axis], {stride_of(from, axis)});
  copy(call, walk);
}

}  // namespace plexaura
