// Batch norm with what stands around it. Each op's result is rounded as if its kernel had stored it, so that the bits are
// those of the ops one by one.

#include "backends/cuda/kernels/batch_norm.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/batch_norm.h"
#include "core/ops/functors.h"

namespace plexaura::cuda {

template <class T>
PLEXAURA_DEVICE inline T rounded_sum(T a, T b) {
  return narrow<T>(widen(a) + widen(b));
}

template <class T>
struct NormaliseAddReluKernel {
  Global<const T> src;
  Normal<T> normal;
  Global<const T> addend;  // null: none
  bool relu;
  Global<T> dst;
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const functors::Relu<Compute<T>, Math> clipped(nullptr);
    block.each_item(dst.count(), [&](std::int64_t i) {
      T y = normal(src[i], of.channel_of(i));
      if (addend) y = rounded_sum(y, addend[i]);
      dst[i] = relu ? narrow<T>(clipped(widen(y))) : y;
    });
  }
};

template <class T>
struct TotalGradKernel {
  Global<const T> src;
  NormalGrad<T> normal;
  Global<const Statistic<T>> diff_mean;
  Global<const Statistic<T>> diff_inverse;
  MaskedGrad<T> grad;
  Global<const T> addend;  // null: none
  Global<T> diff_src;
  Global<T> masked;  // null: nobody wants it
  Channels of;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const auto count = static_cast<double>(of.count());
    block.each_item(src.count(), [&](std::int64_t i) {
      const std::int64_t c = of.channel_of(i);
      const T g = grad[i];
      T sum = normal.of_x(g, c);
      if (addend) sum = rounded_sum(addend[i], sum);
      sum = rounded_sum(sum, moments_grad<T>(src[i], normal.mean[c], normal.inverse[c], diff_mean[c],
                                             diff_inverse[c], count));
      if (masked) masked[i] = g;
      if (diff_src) diff_src[i] = sum;
    });
  }
};

namespace {

// Two numbers for each channel, behind the parts of the channels' sums.
template <class S>
struct Spare {
  Spare(const Call& call, const Channels& of)
      : first(call.workspace + ChannelSums::count(of) * static_cast<std::int64_t>(sizeof(double))),
        second(first + of.channels * static_cast<std::int64_t>(sizeof(S))) {}
  Address first;
  Address second;
};

Channels channels(const Call& call) { return {call.inputs[0].shape(), call.channels_last}; }

template <class T>
Global<const T> input_if(const Call& call, bool exists, std::size_t input) {
  return exists ? call.inputs[input].in<T>() : Global<const T>(nullptr, 0);
}

// The output, or where nobody wants it, scratch memory.
Address kept(const View& output, Address spare) { return output.address != nullptr ? output.address : spare; }

template <class T>
void forward(const Call& call, const BatchNormRegion& region) {
  using S = Statistic<T>;
  const Channels of = channels(call);
  const auto x = call.inputs[0].in<T>();
  const Spare<S> spare(call, of);
  const Address mean = region.moments ? kept(call.outputs[1], spare.first) : call.inputs[3].address;
  const Address inverse = region.moments ? kept(call.outputs[3], spare.second) : call.inputs[4].address;
  if (region.moments)
    enqueue_moments<T>(call, of, op_cast<Moments>(call.op).options().epsilon, x, {mean, of.channels},
                       call.outputs[2].out<S>(), {inverse, of.channels});
  const Normal<T> normal{
      call.inputs[1].in<S>(), call.inputs[2].in<S>(), {mean, of.channels}, {inverse, of.channels}};
  if (call.outputs[0].address != nullptr)
    enqueue(call, blocks_for(x.count()),
            NormaliseAddReluKernel<T>{x, normal, input_if<T>(call, region.adds, region.addend_input()),
                                      region.relu, call.outputs[0].out<T>(), of});
}

template <class T>
void backward(const Call& call, const BatchNormRegion& region) {
  using S = Statistic<T>;
  const Channels of = channels(call);
  const auto x = call.inputs[0].in<T>();
  const NormalGrad<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>()};
  const MaskedGrad<T> grad{call.inputs[BatchNormRegion::grad_input].in<T>(),
                           input_if<T>(call, region.masks, region.result_input())};
  const Spare<S> spare(call, of);
  const ChannelGrads<T> grads{call.outputs[1].out<S>(),
                              call.outputs[2].out<S>(),
                              {spare.first, of.channels},
                              {spare.second, of.channels}};
  enqueue_channel_grads<T>(call, of, x, normal, grad, grads);
  const bool has_masked = call.outputs.size() > BatchNormRegion::masked_output;
  enqueue(call, blocks_for(x.count()),
          TotalGradKernel<T>{
              x,
              normal,
              {spare.first, of.channels},
              {spare.second, of.channels},
              grad,
              input_if<T>(call, region.adds, region.addend_input()),
              call.outputs[0].out<T>(),
              has_masked ? call.outputs[BatchNormRegion::masked_output].out<T>() : Global<T>(nullptr, 0),
              of});
}

}  // namespace

std::size_t batch_norm_region_workspace(const Shape& x, bool channels_last) {
  return channel_sums_workspace(x, channels_last) + static_cast<std::size_t>(x[1]) * 2 * sizeof(double);
}

void enqueue_batch_norm_region(const Call& call, const BatchNormRegion& region) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if (region.forward())
      forward<T>(call, region);
    else
      backward<T>(call, region);
  });
}

}  // namespace plexaura::cuda
