#pragma once

#include "backends/cuda/kernels/channel_sums.h"
#include "backends/cuda/kernels/element.h"

// Code that the kernels of batch norm's ops share with those of its regions.

namespace plexaura::cuda {

// The type of values with one element for each channel.
template <class T>
using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The moments of each channel. The sums add differences from the channel's first element, which are about as
// small as differences from the mean. The address of an output that no one reads is null.
template <class T>
struct MomentsTerms {
  Global<const T> src;
  Global<Statistic<T>> mean;
  Global<Statistic<T>> variance;
  Global<Statistic<T>> inverse;
  double epsilon;
  Channels of;

  struct OfChannel {
    const MomentsTerms& terms;
    double first;

    PLEXAURA_DEVICE T read(std::int64_t place) const { return terms.src[place]; }
    PLEXAURA_DEVICE TwoSums operator()(std::int64_t, T x) const {
      const double centred = static_cast<double>(widen(x)) - first;
      return {centred, centred * centred};
    }
  };

  PLEXAURA_DEVICE double first_of(std::int64_t channel) const {
    return of.count() > 0 ? static_cast<double>(widen(src[channel * of.run])) : 0.0;
  }
  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t channel) const { return {*this, first_of(channel)}; }

  PLEXAURA_DEVICE void finish(std::int64_t c, const TwoSums& sum) const {
    const bool exists = of.count() > 0;
    const double count = exists ? static_cast<double>(of.count()) : 1.0;
    const double moved = sum.first / count;
    const double spread = sum.second / count - moved * moved;
    const double positive = spread < 0 ? 0.0 : spread;
    if (mean) mean[c] = static_cast<Statistic<T>>(first_of(c) + moved);
    if (variance) variance[c] = static_cast<Statistic<T>>(positive);
    if (inverse) inverse[c] = static_cast<Statistic<T>>(1 / Math::sqrt(positive + epsilon));
  }
};

// Computes normalise() of one element.
template <class T>
struct Normal {
  Global<const Statistic<T>> scale;
  Global<const Statistic<T>> shift;
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;

  struct OfChannel {
    double mean;
    double factor;
    double shift;

    PLEXAURA_DEVICE T operator()(T x) const {
      return narrow<T>((static_cast<double>(widen(x)) - mean) * factor + shift);
    }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const {
    return {mean[c], static_cast<double>(scale[c]) * static_cast<double>(inverse[c]), shift[c]};
  }
};

// The gradients of normalise(), from the sum of a channel's gradients and the sum of their products with x -
// mean.
template <class T>
struct NormalGrad {
  Global<const Statistic<T>> scale;
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;

  struct OfX {
    double factor;

    PLEXAURA_DEVICE T operator()(T grad) const {
      return narrow<T>(static_cast<double>(widen(grad)) * factor);
    }
  };

  PLEXAURA_DEVICE OfX of_x(std::int64_t c) const {
    return {static_cast<double>(scale[c]) * static_cast<double>(inverse[c])};
  }
  PLEXAURA_DEVICE Statistic<T> of_scale(const TwoSums& sum, std::int64_t c) const {
    return static_cast<Statistic<T>>(inverse[c] * sum.second);
  }
  PLEXAURA_DEVICE Statistic<T> of_shift(const TwoSums& sum) const {
    return static_cast<Statistic<T>>(sum.first);
  }
  PLEXAURA_DEVICE Statistic<T> of_mean(const TwoSums& sum, std::int64_t c) const {
    return static_cast<Statistic<T>>(-static_cast<double>(scale[c]) * inverse[c] * sum.first);
  }
  PLEXAURA_DEVICE Statistic<T> of_inverse(const TwoSums& sum, std::int64_t c) const {
    return static_cast<Statistic<T>>(scale[c] * sum.second);
  }
};

// The gradients of normalise() that have one element for each channel. The address of a gradient that no one
// reads is null.
template <class T>
struct ChannelGrads {
  Global<Statistic<T>> scale;
  Global<Statistic<T>> shift;
  Global<Statistic<T>> mean;
  Global<Statistic<T>> inverse;
};

// The two terms that each element adds to the sums of its channel, from which finish() computes the
// ChannelGrads. `grad` computes the gradient of the result. It has the members of the terms of
// ByChannelKernel, but its call also takes x: grad.of_channel(channel)(place, read, x).
template <class T, class Grad>
struct NormaliseGradTerms {
  Global<const T> src;
  NormalGrad<T> normal;
  Grad grad;
  ChannelGrads<T> grads;

  struct OfChannel {
    const NormaliseGradTerms& terms;
    typename Grad::OfChannel grad;
    double mean;

    struct Read {
      T x;
      typename Grad::Read grad;
    };

    PLEXAURA_DEVICE Read read(std::int64_t place) const { return {terms.src[place], grad.read(place)}; }
    PLEXAURA_DEVICE TwoSums operator()(std::int64_t place, const Read& read) const {
      const auto of_element = static_cast<double>(widen(grad(place, read.grad, read.x)));
      return {of_element, of_element * (static_cast<double>(widen(read.x)) - mean)};
    }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c) const {
    return {*this, grad.of_channel(c), normal.mean[c]};
  }

  PLEXAURA_DEVICE void finish(std::int64_t c, const TwoSums& sum) const {
    if (grads.scale) grads.scale[c] = normal.of_scale(sum, c);
    if (grads.shift) grads.shift[c] = normal.of_shift(sum);
    if (grads.mean) grads.mean[c] = normal.of_mean(sum, c);
    if (grads.inverse) grads.inverse[c] = normal.of_inverse(sum, c);
  }
};

// Reads the gradient of the result from memory.
template <class T>
struct GivenGrad {
  Global<const T> grad;

  using Read = T;
  struct OfChannel {
    const GivenGrad& of;

    PLEXAURA_DEVICE Read read(std::int64_t place) const { return of.grad[place]; }
    PLEXAURA_DEVICE T operator()(std::int64_t, Read read, T) const { return read; }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t) const { return {*this}; }
};

// The gradient of moments() by the elements of a channel.
template <class T>
struct MomentsGrad {
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;
  Global<const Statistic<T>> diff_mean;
  Global<const Statistic<T>> diff_inverse;

  struct OfChannel {
    double mean;
    double level;
    double tilt;

    PLEXAURA_DEVICE T operator()(T x) const {
      const double centred = static_cast<double>(widen(x)) - mean;
      return narrow<T>(level - centred * tilt);
    }
  };

  PLEXAURA_DEVICE OfChannel of_channel(std::int64_t c, double count) const {
    const double scale = inverse[c];
    return {mean[c], diff_mean[c] / count, scale * scale * scale * diff_inverse[c] / count};
  }
};

}  // namespace plexaura::cuda
