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

// Returns the element, or 0 if there is no array.
template <class T>
PLEXAURA_DEVICE inline T element_if(const Global<const T>& values, std::int64_t place) {
  if (values) return values[place];
  return T();
}

template <class T>
struct NormaliseAddReluTerms {
  Global<const T> src;
  Normal<T> normal;
  Global<const T> addend;  // value added to the result; null: none is added
  bool relu;
  Global<T> dst;

  struct Read {
    T x;
    T addend;
  };
  struct OfChannel {
    const NormaliseAddReluTerms& terms;
    typename Normal<T>::OfChannel normal;

    PLEXAURA_DEVICE Read read(std::int64_t i) const { return {terms.src[i], element_if(terms.addend, i)}; }
    PLEXAURA_DEVICE void operator()(std::int64_t i, const Read& read) const {
      const functors::Relu<Compute<T>, Math> clipped(nullptr);
      T y = normal(read.x);
      if (terms.addend) y = rounded_sum(y, read.addend);
      terms.dst[i] = terms.relu ? narrow<T>(clipped(widen(y))) : y;
    }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const { return {*this, normal.of_channel(c)}; }
};

// The gradient of the result: the sum of one or two gradients, masked if a relu followed.
template <class T>
struct MaskedGrad {
  Global<const T> grad;
  Global<const T> more;    // second gradient; null: there is only one
  Global<const T> result;  // result of the relu; null: there is no relu, or `clipped` replaces it
  Normal<T> clipped;       // recomputes the input of the relu; its shift is null if `result` is read instead
  Global<T> kept;          // receives the masked gradient; null: no one reads it

  struct Read {
    T grad;
    T more;
    T result;
  };
  struct OfChannel {
    const MaskedGrad& of;
    typename Normal<T>::OfChannel clipped;

    PLEXAURA_DEVICE Read read(std::int64_t i) const {
      return {of.grad[i], element_if(of.more, i), element_if(of.result, i)};
    }
    PLEXAURA_DEVICE bool passes(const Read& read, T x) const {
      if (of.clipped.shift) return widen(clipped(x)) > 0;
      return !of.result || widen(read.result) > 0;
    }
    PLEXAURA_DEVICE T operator()(std::int64_t i, const Read& read, T x) const {
      const T sum = of.more ? rounded_sum(read.grad, read.more) : read.grad;
      const T masked = passes(read, x) ? sum : narrow<T>(Compute<T>(0));
      if (of.kept) of.kept[i] = masked;
      return masked;
    }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const {
    if (clipped.shift) return {*this, clipped.of_channel(c)};
    return {*this, {}};
  }
};

template <class T, class Grad>
struct TotalGradTerms {
  Global<const T> src;
  NormalGrad<T> normal;
  Global<const Statistic<T>> diff_mean;
  Global<const Statistic<T>> diff_inverse;
  Grad grad;
  Global<const T> addend;  // value added to the gradient; null: none is added
  Global<T> diff_src;
  Channels of;

  struct Read {
    T x;
    typename Grad::Read grad;
    T addend;
  };
  struct OfChannel {
    const TotalGradTerms& terms;
    typename Grad::OfChannel grad;
    typename NormalGrad<T>::OfX of_x;
    typename MomentsGrad<T>::OfChannel of_moments;

    PLEXAURA_DEVICE Read read(std::int64_t i) const {
      return {terms.src[i], grad.read(i), element_if(terms.addend, i)};
    }
    PLEXAURA_DEVICE void operator()(std::int64_t i, const Read& read) const {
      T sum = of_x(grad(i, read.grad, read.x));
      if (terms.addend) sum = rounded_sum(read.addend, sum);
      terms.diff_src[i] = rounded_sum(sum, of_moments(read.x));
    }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const {
    const MomentsGrad<T> moments{normal.mean, normal.inverse, diff_mean, diff_inverse};
    return {*this, grad.of_channel(c), normal.of_x(c),
            moments.of_channel(c, static_cast<double>(of.count()))};
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

Channels channels(const Call& call) { return {call.inputs[0].shape(), call.channels_last}; }

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
    enqueue_channel_sums(call, of,
                         MomentsTerms<T>{x,
                                         {mean, of.channels},
                                         call.outputs[2].out<S>(),
                                         {inverse, of.channels},
                                         op_cast<Moments>(call.op).options().epsilon,
                                         of});
  const Normal<T> normal{
      call.inputs[1].in<S>(), call.inputs[2].in<S>(), {mean, of.channels}, {inverse, of.channels}};
  if (call.outputs[0].address != nullptr)
    enqueue_by_channel(
        call, of,
        NormaliseAddReluTerms<T>{x, normal, input_if<T>(call, region.adds, region.addend_input()),
                                 region.relu, call.outputs[0].out<T>()});
}

// If the masked gradient is an output, the first kernel writes it and the second one reads it. Otherwise both
// compute it.
template <class T>
void backward(const Call& call, const FusedBatchNorm& region) {
  using S = Statistic<T>;
  const Channels of = channels(call);
  const auto x = call.inputs[0].in<T>();
  const NormalGrad<T> normal{call.inputs[1].in<S>(), call.inputs[2].in<S>(), call.inputs[3].in<S>()};
  const bool keeps = call.outputs.size() > BatchNormRegion::masked_output;
  const View kept = keeps ? call.outputs[BatchNormRegion::masked_output] : View{};
  const MaskedGrad<T> grad{call.inputs[BatchNormRegion::grad_input].in<T>(),
                           input_if<T>(call, region.sums, region.second_grad_input()),
                           input_if<T>(call, region.of.masks && !region.remasks, region.of.result_input()),
                           {normal.scale, input_if<S>(call, region.remasks, region.of.result_input()),
                            normal.mean, normal.inverse},
                           keeps ? kept.out<T>() : Global<T>(nullptr, 0)};
  const Spare<S> spare(call, of);
  const ChannelGrads<T> grads{call.outputs[1].out<S>(),
                              call.outputs[2].out<S>(),
                              {spare.first, of.channels},
                              {spare.second, of.channels}};
  enqueue_channel_sums(call, of, NormaliseGradTerms<T, MaskedGrad<T>>{x, normal, grad, grads});
  if (call.outputs[0].address == nullptr) return;
  const auto enqueue_total = [&](const auto& grad_again) {
    enqueue_by_channel(call, of,
                       TotalGradTerms<T, std::remove_cvref_t<decltype(grad_again)>>{
                           x,
                           normal,
                           {spare.first, of.channels},
                           {spare.second, of.channels},
                           grad_again,
                           input_if<T>(call, region.of.adds, region.of.addend_input()),
                           call.outputs[0].out<T>(),
                           of});
  };
  if (kept.address != nullptr)
    enqueue_total(GivenGrad<T>{kept.in<T>()});
  else
    enqueue_total(grad);
}

}  // namespace

std::size_t batch_norm_region_workspace(const Shape& x, bool channels_last) {
  return channel_sums_workspace(x, channels_last) + static_cast<std::size_t>(x[1]) * 2 * sizeof(double);
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
