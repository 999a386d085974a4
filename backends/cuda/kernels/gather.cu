// Rows by their indices.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "backends/cuda/kernels/wrong_index.h"
#include "core/ops/gather.h"

namespace plexaura::cuda {

// A value of [before, extent, behind] elements and one of [before, count, behind] beside `count` indices of the axis
// between.
struct Rows {
  Global<const std::int64_t> indices;
  std::int64_t extent;
  std::int64_t behind;
  Global<WrongIndex> wrong;
  const std::string* launch;

  // One outside of the value is told, and counts as 0.
  PLEXAURA_DEVICE std::int64_t index(std::int64_t i) const {
    const std::int64_t index = indices[i];
    if (index >= 0 && index < extent) return index;
    tell(wrong.shared(0), {.launch = launch, .element = i, .index = index, .extent = extent});
    return 0;
  }
};

template <class T>
struct GatherKernel {
  Global<const T> src;
  Global<T> dst;
  Rows rows;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const std::int64_t count = rows.indices.count();
    block.each_item(dst.count(), [&](std::int64_t i) {
      const std::int64_t row = i / rows.behind;
      const std::int64_t from = row / count * rows.extent + rows.index(row % count);
      dst[i] = src[from * rows.behind + i % rows.behind];
    });
  }
};

// Each element adds up what points to it, in the order of the indices.
template <class T>
struct GatherGradKernel {
  Global<const T> src;
  Global<T> dst;
  Rows rows;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const std::int64_t count = rows.indices.count();
    block.each_item(dst.count(), [&](std::int64_t i) {
      const std::int64_t own = i / rows.behind % rows.extent;
      const std::int64_t before = i / (rows.behind * rows.extent);
      T sum = narrow<T>(0.0F);
      for (std::int64_t k = 0; k < count; ++k)
        if (rows.index(k) == own)
          sum = narrow<T>(widen(sum) + widen(src[(before * count + k) * rows.behind + i % rows.behind]));
      dst[i] = sum;
    });
  }
};

namespace {

Rows rows_of(const Call& call, const Shape& whole, std::int64_t axis) {
  return {call.inputs[1].in<std::int64_t>(), whole[axis], stride_of(whole, axis),
          Global<WrongIndex>(call.wrong_index, 1), &call.name};
}

}  // namespace

void cuda_gather(const Call& call) {
  const View& result = call.outputs[0];
  const Shape& x = call.inputs[0].shape();
  const Rows rows = rows_of(call, x, normalise_axis(op_cast<Gather>(call.op).options().axis, x.rank()));
  dispatch_size(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            GatherKernel<T>{call.inputs[0].in<T>(), result.out<T>(), rows});
  });
}

void cuda_gather_grad(const Call& call) {
  const View& result = call.outputs[0];
  const Rows rows = rows_of(call, result.shape(), op_cast<GatherGrad>(call.op).options().axis);
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            GatherGradKernel<T>{call.inputs[0].in<T>(), result.out<T>(), rows});
  });
}

}  // namespace plexaura::cuda
