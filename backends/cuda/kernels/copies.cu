// Ops that move elements without changing them.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura::cuda {

// Moves an element for each element of a shape. Operand 0 of the strides is the source, and operand 1 the
// target.
template <class T>
struct MoveKernel {
  Global<const T> src;
  Global<T> dst;
  std::int64_t count;
  std::int64_t first_src;
  std::int64_t first_dst;
  bool is_wide;
  Strides<2> strides;

  static constexpr int width = elements_at_once<T>;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, count, is_wide, [&]<int size>(std::int64_t i, Width<size>) {
      dst.set_several(first_dst + strides.template place<1>(i),
                      strides.template group<0, size>(src, i, first_src));
    });
  }
};

template <class T>
struct ClearKernel {
  Global<T> dst;
  bool is_wide;

  static constexpr int width = elements_at_once<T>;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    each_group<width>(block, dst.count(), is_wide,
                      [&]<int size>(std::int64_t i, Width<size>) { dst.set_several(i, Several<T, size>{}); });
  }
};

namespace {

struct Ends {
  std::int64_t src = 0;
  std::int64_t dst = 0;
};

void move(const Call& call, const View& src, std::int64_t count, const Strides<2>& strides, Ends first = {}) {
  const View& dst = call.outputs[0];
  dispatch_size(dst.dtype(), [&]<class T>(std::type_identity<T>) {
    using Kernel = MoveKernel<T>;
    const bool is_wide = are_aligned(src, dst) && first.src % Kernel::width == 0 &&
                         first.dst % Kernel::width == 0 && strides.has_groups_of(Kernel::width);
    enqueue(call, blocks_for_groups(count, Kernel::width, is_wide),
            Kernel{src.in<T>(), dst.out<T>(), count, first.src, first.dst, is_wide, strides});
  });
}

// Returns the strides of two operands: a part of a value, cut along one axis, and the whole value.
Strides<2> strides_of_part(const Shape& part, const Shape& whole, std::int64_t axis, std::int64_t step,
                           bool whole_is_source) {
  Strides<2> strides;
  for (std::int64_t i = 0; i < whole.rank(); ++i) {
    const std::int64_t of_whole = stride_of(whole, i) * (i == axis ? step : 1);
    const std::int64_t of_part = stride_of(part, i);
    strides.add_axis(part[i],
                     whole_is_source ? std::array{of_whole, of_part} : std::array{of_part, of_whole});
  }
  return strides;
}

}  // namespace

void cuda_reshape(const Call& call) {
  Strides<2> strides;
  const std::int64_t count = call.outputs[0].elements();
  strides.add_axis(count, {1, 1});
  move(call, call.inputs[0], count, strides);
}

void cuda_stop_gradient(const Call& call) { cuda_reshape(call); }

void cuda_broadcast_to(const Call& call) {
  const Shape& to = call.outputs[0].shape();
  move(call, call.inputs[0], to.elements(), broadcast_strides(to, call.inputs[0].shape(), to));
}

void cuda_permute(const Call& call) {
  const Shape& from = call.inputs[0].shape();
  const Shape& to = call.outputs[0].shape();
  const auto& axes = op_cast<Permute>(call.op).options().axes;
  Strides<2> strides;
  for (std::int64_t axis = 0; axis < to.rank(); ++axis)
    strides.add_axis(to[axis], {stride_of(from, axes[static_cast<std::size_t>(axis)]), stride_of(to, axis)});
  move(call, call.inputs[0], to.elements(), strides);
}

void cuda_slice(const Call& call) {
  const Shape& whole = call.inputs[0].shape();
  const Shape& part = call.outputs[0].shape();
  const SliceOptions& options = op_cast<SliceOp>(call.op).options();
  const std::int64_t axis = normalise_axis(options.axis, whole.rank());
  const SliceIndices indices = indices_of(options, whole.rank(), whole[axis]);
  move(call, call.inputs[0], part.elements(), strides_of_part(part, whole, axis, indices.step, true),
       {.src = indices.start * stride_of(whole, axis)});
}

void cuda_slice_grad(const Call& call) {
  const View& result = call.outputs[0];
  const Shape& part = call.inputs[0].shape();
  const SliceGradOptions& options = op_cast<SliceGrad>(call.op).options();
  const SliceIndices indices = indices_of(options, part.rank(), options.extent);
  dispatch_size(result.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool is_wide = are_aligned(result);
    enqueue(call, blocks_for_groups(result.elements(), ClearKernel<T>::width, is_wide),
            ClearKernel<T>{result.out<T>(), is_wide});
  });
  move(call, call.inputs[0], part.elements(),
       strides_of_part(part, result.shape(), indices.axis, indices.step, false),
       {.dst = indices.start * stride_of(result.shape(), indices.axis)});
}

void cuda_concat(const Call& call) {
  const Shape& whole = call.outputs[0].shape();
  const std::int64_t axis = normalise_axis(op_cast<Concat>(call.op).options().axis, whole.rank());
  std::int64_t first = 0;
  for (const View& part : call.inputs) {
    move(call, part, part.elements(), strides_of_part(part.shape(), whole, axis, 1, false),
         {.dst = first * stride_of(whole, axis)});
    first += part.shape()[axis];
  }
}

}  // namespace plexaura::cuda
