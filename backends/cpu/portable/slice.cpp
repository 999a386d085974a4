#include "core/ops/slice.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/portable/portable.h"
#include "core/loops/loops.h"
#include "core/loops/types.h"
#include "core/ops/concat.h"

namespace plexaura {

namespace {

using namespace portable;

// The walk over a slice beside the whole value, and the place of the slice's first element there.
struct Part {
  StridedWalk<1> walk;
  std::int64_t first;
};

Part part_of(const Shape& whole, const Shape& slice, const SliceIndices& indices) {
  Part part{StridedWalk<1>(slice.elements()), indices.start * stride_of(whole, indices.axis)};
  for (std::int64_t axis = 0; axis < whole.rank(); ++axis)
    part.walk.add_axis(slice[axis], {stride_of(whole, axis) * (axis == indices.axis ? indices.step : 1)});
  return part;
}

// Calls body(place in the slice, place in the whole, step there, count) for runs of elements.
template <class Body>
void for_each_run(const Part& part, const Body& body) {
  const std::int64_t step = part.walk.run_strides()[0];
  parallel_pieces(part.walk.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
    part.walk.runs(begin, end, [&](std::int64_t at, const auto& offsets, std::int64_t length) {
      body(at, part.first + offsets[0], step, length);
    });
  });
}

}  // namespace

void portable_slice(const HostCall& call) {
  if (call.outputs[0].data == nullptr) return;
  const Shape& whole = call.inputs[0].shape();
  const SliceOptions& options = op_cast<SliceOp>(call.op).options();
  const std::int64_t axis = normalise_axis(options.axis, whole.rank());
  const Part part = part_of(whole, call.outputs[0].shape(), indices_of(options, whole.rank(), whole[axis]));
  dispatch(call.outputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = call.outputs[0].as<T>();
    for_each_run(part, [=](std::int64_t at, std::int64_t place, std::int64_t step, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) dst[at + i] = src[place + i * step];
    });
  });
}

void portable_slice_grad(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr) return;
  const SliceGradOptions& options = op_cast<SliceGrad>(call.op).options();
  const Part part = part_of(result.shape(), call.inputs[0].shape(),
                            indices_of(options, result.shape().rank(), options.extent));
  std::memset(result.data, 0, static_cast<std::size_t>(result.type->bytes()));
  dispatch(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* src = call.inputs[0].as<T>();
    T* dst = result.as<T>();
    for_each_run(part, [=](std::int64_t at, std::int64_t place, std::int64_t step, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) dst[place + i * step] = src[at + i];
    });
  });
}

void portable_concat(const HostCall& call) {
  const HostView& result = call.outputs[0];
  if (result.data == nullptr || result.elements() == 0) return;
  const std::int64_t axis = normalise_axis(op_cast<Concat>(call.op).options().axis, result.shape().rank());
  const auto element = static_cast<std::int64_t>(size_of(result.dtype()));
  const std::int64_t behind = stride_of(result.shape(), axis) * element;
  const std::int64_t row = result.shape()[axis] * behind;
  const std::int64_t rows = result.elements() * element / row;
  std::int64_t first = 0;
  for (const HostView& part : call.inputs) {
    const std::int64_t bytes = part.shape()[axis] * behind;
    parallel_for(rows, bytes, [&](std::int64_t i) {
      std::copy_n(part.data + i * bytes, bytes, result.data + i * row + first);
    });
    first += bytes;
  }
}

}  // namespace plexaura
