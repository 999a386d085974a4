// Batch norm together with neighbouring ops. The result of each op is rounded as if it had been stored, so
// that the bits equal those of separate kernels.

#include "backends/cuda/kernels/batch_norm.h"
#include "backends/cuda/kernels/kernels.h"
#include "core/ops/batch_norm.h"
#include "core/ops/functors.h"

namespace plexaura::cuda {

template <class T>
PLEXAURA_DEVICE inline T rounded_sum(T a, T b) {
  return narrow<T>(widen(a) + widen(b));
}

// Reads elements. Returns zeros if there is no array.
template <int width, class T>
PLEXAURA_DEVICE inline Several<T, width> read_if(const Global<const T>& values, std::int64_t place) {
  if (values) return values.template several<width>(place);
  return {};
}

template <class T>
struct NormaliseAddReluTerms {
  Global<const T> src;
  Normal<T> normal;
  Global<const T> addend;  // value added to the result; null: none is added
  bool relu;
  Global<T> dst;

  static constexpr int blocks_at_once = 4;

  template <int width>
  struct Read {
    Several<T, width> x;
    Several<T, width> addend;
  };

  template <int own>
  PLEXAURA_DEVICE auto of_channels(std::int64_t c) const {
    return normal.template of_channels<own>(c);
  }
  template <int width>
  PLEXAURA_DEVICE Read<width> read(std::int64_t i) const {
    return {src.template several<width>(i), read_if<width>(addend, i)};
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE void apply(std::int64_t i, const Numbers& of, const Read<width>& read) const {
    const functors::Relu<Compute<T>, Math> clipped(nullptr);
    Several<T, width> y;
    for (int k = 0; k < width; ++k) y[k] = of[k](read.x[k]);
    if (addend)
      for (int k = 0; k < width; ++k) y[k] = rounded_sum(y[k], read.addend[k]);
    if (relu)
      for (int k = 0; k < width; ++k) y[k] = narrow<T>(clipped(widen(y[k])));
    dst.set_several(i, y);
  }
};

// The value that masks the gradient of a result.
enum class Mask {
  none,
  result,      // the relu's result, which is read
  normalised,  // the relu's operand, which is computed again
};

// The gradient of the result: the sum of one or two gradients, masked if a relu followed.
template <class T, Mask mask>
struct MaskedGrad {
  Global<const T> grad;
  Global<const T> more;    // second gradient; null: there is only one
  Global<const T> result;  // result of the relu, for Mask::result
  Normal<T> clipped;       // computes the operand of the relu, for Mask::normalised
  Global<T> kept;          // receives the masked gradient; null: no one reads it

  static constexpr int blocks_at_once = 3;
  struct Nothing {};
  using Of = std::conditional_t<mask == Mask::normalised, typename Normal<T>::Of, Nothing>;
  template <int width>
  struct Read {
    Several<T, width> grad;
    Several<T, width> more;
    std::conditional_t<mask == Mask::result, Several<T, width>, Nothing> result;
  };

  template <int own>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t c) const {
    if constexpr (mask == Mask::normalised)
      return clipped.template of_channels<own>(c);
    else
      return {};
  }
  template <int width>
  PLEXAURA_DEVICE Read<width> read(std::int64_t i) const {
    Read<width> read{grad.template several<width>(i), read_if<width>(more, i), {}};
    if constexpr (mask == Mask::result) read.result = result.template several<width>(i);
    return read;
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE Several<T, width> values(std::int64_t i, const Numbers& of, const Read<width>& read,
                                           const Several<T, width>& x) const {
    Several<T, width> masked = read.grad;
    if (more)
      for (int k = 0; k < width; ++k) masked[k] = rounded_sum(masked[k], read.more[k]);
    for (int k = 0; k < width; ++k)
      if (!passes(of(k), read, x, k)) masked[k] = narrow<T>(Compute<T>(0));
    if (kept) kept.set_several(i, masked);
    return masked;
  }
  template <int width>
  PLEXAURA_DEVICE bool passes([[maybe_unused]] const Of& of, [[maybe_unused]] const Read<width>& read,
                              [[maybe_unused]] const Several<T, width>& x, [[maybe_unused]] int k) const {
    if constexpr (mask == Mask::normalised)
      return widen(of(x[k])) > 0;
    else if constexpr (mask == Mask::result)
      return widen(read.result[k]) > 0;
    else
      return true;
  }
};

template <class T, class Grad>
struct TotalGradTerms {
  Global<const T> src;
  NormalGrad<T> normal;
  MomentsGrad<T> moments;
  Grad grad;
  Global<const T> addend;  // value added to the gradient; null: none is added
  Global<T> diff_src;

  static constexpr int blocks_at_once = Grad::blocks_at_once;

  struct Of {
    typename Grad::Of grad;
    typename NormalGrad<T>::Of of_x;
    typename MomentsGrad<T>::Of of_moments;
  };
  template <int width>
  struct Read {
    Several<T, width> x;
    typename Grad::template Read<width> grad;
    Several<T, width> addend;
  };

  template <int own>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t c) const {
    const auto of_grad = grad.template of_channels<own>(c);
    const auto of_x = normal.template of_channels<own>(c);
    const auto of_moments = moments.template of_channels<own>(c);
    OfChannels<Of, own> numbers;
    for (int k = 0; k < own; ++k) numbers.of[k] = {of_grad.of[k], of_x.of[k], of_moments.of[k]};
    return numbers;
  }
  template <int width>
  PLEXAURA_DEVICE Read<width> read(std::int64_t i) const {
    return {src.template several<width>(i), grad.template read<width>(i), read_if<width>(addend, i)};
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE void apply(std::int64_t i, const Numbers& of, const Read<width>& read) const {
    const auto of_grad = [&](int k) -> const typename Grad::Of& { return of[k].grad; };
    Several<T, width> sum = grad.template values<width>(i, of_grad, read.grad, read.x);
    for (int k = 0; k < width; ++k) sum[k] = of[k].of_x(sum[k]);
    if (addend)
      for (int k = 0; k < width; ++k) sum[k] = rounded_sum(read.addend[k], sum[k]);
    for (int k = 0; k < width; ++k) sum[k] = rounded_sum(sum[k], of[k].of_moments(read.x[k]));
    diff_src.set_several(i, sum);
  }
};

namespace {

// Two numbers for each channel. They lie in the workspace after the parts of the channels' sums.
template <class S>
struct Spare {
  Spare(const Call& call, const Channels& of)
      : first(call.workspace + ChannelSums::count(of) * static_cast<std::int64_t>(sizeof(double))),
        second(first + of.channels * static_cast<std::int64_t>(sizeof(S))) {}
  Address first;
  Address second;
};

Channels channels(const Call& call) { return {*call.inputs[0].type, call.channels_last}; }

// Returns the input as an array. Returns an empty array if there is no such input.
template <class T>
Global<const T> input_if(const Call& call, bool exists, std::size_t input) {
  return exists ? call.inputs[input].in<T>() : Global<const T>(nullptr, 0);
}

// Returns the address of the output. Returns `spare`, an address in the workspace, if no one reads the
// output.
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
    enqueue_channel_sums<T>(call, of,
                            MomentsTerms<T>{x,
                                            {mean, of.channels},
                                            call.outputs[2].out<S>(),
                                            {inverse, of.channels},
                                            op_cast<Moments>(call.op).options().epsilon,
                                            of});
  const Normal<T> normal{
      call.inputs[1].in<S>(), call.inputs[2].in<S>(), {mean, of.channels}, {inverse, of.channels}};
  if (call.outputs[0].address != nullptr)
    enqueue_by_channel<T>(
        call, of,
        NormaliseAddReluTerms<T>{x, normal, input_if<T>(call, region.adds, region.addend_input()),
                                 region.relu, call.outputs[0].out<T>()});
}

// If the masked gradient is an output, the first kernel writes it and the second one reads it. Otherwise both
// compute it.
template <class T, Mask mask>
void backward(const Call& call, const FusedBatchNorm& region) {
  using S = Statistic<T>;
  const Channels of = channels(call);
  const auto x = call.inputs[0].in<T>();
  const NormalGrad<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>()};
  const bool keeps = call.outputs.size() > BatchNormRegion::masked_output;
  const View kept = keeps ? call.outputs[BatchNormRegion::masked_output] : View{};
  const std::size_t of_mask = region.of.result_input();
  const MaskedGrad<T, mask> grad{
      call.inputs[BatchNormRegion::grad_input].in<T>(),
      input_if<T>(call, region.sums, region.second_grad_input()),
      input_if<T>(call, mask == Mask::result, of_mask),
      {normal.scale, input_if<S>(call, mask == Mask::normalised, of_mask), normal.mean, normal.inverse},
      keeps ? kept.out<T>() : Global<T>(nullptr, 0)};
  const Spare<S> spare(call, of);
  const ChannelGrads<T> grads{call.outputs[1].out<S>(),
                              call.outputs[2].out<S>(),
                              {spare.first, of.channels},
                              {spare.second, of.channels}};
  enqueue_channel_sums<T>(call, of, NormaliseGradTerms<T, MaskedGrad<T, mask>>{x, normal, grad, grads});
  if (call.outputs[0].address == nullptr) return;
  const MomentsGrad<T> moments{
      normal.mean, normal.inverse, {spare.first, of.channels}, {spare.second, of.channels}, share_of<S>(of)};
  const auto addend = input_if<T>(call, region.of.adds, region.of.addend_input());
  const auto enqueue_total = [&]<class Grad>(const Grad& grad_again) {
    enqueue_by_channel<T>(
        call, of, TotalGradTerms<T, Grad>{x, normal, moments, grad_again, addend, call.outputs[0].out<T>()});
  };
  if (kept.address != nullptr)
    enqueue_total(GivenGrad<T>{kept.in<T>()});
  else
    enqueue_total(grad);
}

template <class T>
void backward(const Call& call, const FusedBatchNorm& region) {
  if (region.remasks) return backward<T, Mask::normalised>(call, region);
  if (region.of.masks) return backward<T, Mask::result>(call, region);
  backward<T, Mask::none>(call, region);
}

}  // namespace

std::size_t batch_norm_region_workspace(const TensorType& x, bool channels_last) {
  return channel_sums_workspace(x, channels_last) + static_cast<std::size_t>(x.shape[1]) * 2 * sizeof(double);
}

void enqueue_batch_norm_region(const Call& call, const FusedBatchNorm& region) {
  dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
    if (region.of.forward())
      forward<T>(call, region.of);
    else
      backward<T>(call, region);
  });
}

}  // namespace plexaura::cuda
