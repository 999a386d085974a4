// Random values and dropout. One thread computes one element. The kernels read seed, step and first sample
// from the device's memory, so that a recorded step draws new numbers in each replay.

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/ops/dropout.h"
#include "core/ops/philox.h"
#include "core/ops/random.h"

namespace plexaura::cuda {

// The random numbers that are drawn for a value.
struct DrawsOf {
  Global<const std::int64_t> random;  // seed, step and position of the first sample
  std::int64_t stream;
  std::int64_t sample;  // number of elements of a sample; 0 if axis 0 is not the batch

  struct Draw {
    philox::Block block;
    int lane;
    PLEXAURA_DEVICE std::uint32_t word() const { return block.words[lane]; }
  };

  PLEXAURA_DEVICE Draw at(std::int64_t element) const {
    const philox::Draws draws(random[0], random[1], stream);
    const std::int64_t index = random[2] * sample + element;
    return {draws.block(index / 4), static_cast<int>(index % 4)};
  }
};

template <class T>
struct DropoutKernel {
  Global<const T> src;
  Global<T> dst;
  Global<bool> mask;
  DrawsOf draws;
  std::uint64_t dropped_below;
  Compute<T> scale;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(src.count(), [&](std::int64_t i) {
      const bool kept = draws.at(i).word() >= dropped_below;
      if (dst) dst[i] = narrow<T>(kept ? widen(src[i]) * scale : Compute<T>(0));
      if (mask) mask[i] = kept;
    });
  }
};

template <class T>
struct UniformKernel {
  Global<T> dst;
  DrawsOf draws;
  double low;
  double width;
  double largest;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_item(dst.count(), [&](std::int64_t i) {
      const double value = low + width * (draws.at(i).word() * 0x1p-32);
      dst[i] = narrow<T>(static_cast<Compute<T>>(value < largest ? value : largest));
    });
  }
};

// Makes normally distributed values by the method of Box and Muller: each pair of words makes two values, the
// cosine for the even lane and the sine for the odd one.
template <class T>
struct NormalKernel {
  Global<T> dst;
  DrawsOf draws;
  double mean;
  double deviation;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    constexpr double two_pi = 6.283185307179586476925;
    block.each_item(dst.count(), [&](std::int64_t i) {
      const DrawsOf::Draw draw = draws.at(i);
      const int even = draw.lane & ~1;
      const double radius = Math::sqrt(-2 * Math::log((draw.block.words[even] + 1.0) * 0x1p-32));
      const double angle = two_pi * (draw.block.words[even + 1] * 0x1p-32);
      const double turned = draw.lane == even ? std::cos(angle) : std::sin(angle);
      dst[i] = narrow<T>(static_cast<Compute<T>>(mean + deviation * radius * turned));
    });
  }
};

namespace {

DrawsOf draws_of(const View& random, const Shape& shape, std::int64_t stream, bool batch) {
  return {random.in<std::int64_t>(), stream, batch && shape.rank() > 0 ? stride_of(shape, 0) : 0};
}

}  // namespace

void cuda_dropout(const Call& call) {
  const View& x = call.inputs[0];
  const DropoutDraws& options = op_cast<DropoutOp>(call.op).options();
  dispatch_floating(x.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(x.elements()),
            DropoutKernel<T>{x.in<T>(), call.outputs[0].out<T>(), call.outputs[1].out<bool>(),
                             draws_of(call.inputs[1], x.shape(), options.stream, options.batch),
                             static_cast<std::uint64_t>(options.p * 4294967296.0),
                             static_cast<Compute<T>>(1 / (1 - options.p))});
  });
}

void cuda_uniform(const Call& call) {
  const View& result = call.outputs[0];
  const RandomDraws& of = op_cast<RandomValues>(call.op).options();
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            UniformKernel<T>{result.out<T>(), draws_of(call.inputs[0], result.shape(), of.stream, of.batch),
                             of.first, of.second - of.first, of.largest()});
  });
}

void cuda_normal(const Call& call) {
  const View& result = call.outputs[0];
  const RandomDraws& of = op_cast<RandomValues>(call.op).options();
  dispatch_floating(result.dtype(), [&]<class T>(std::type_identity<T>) {
    enqueue(call, blocks_for(result.elements()),
            NormalKernel<T>{result.out<T>(), draws_of(call.inputs[0], result.shape(), of.stream, of.batch),
                            of.first, of.second});
  });
}

}  // namespace plexaura::cuda
