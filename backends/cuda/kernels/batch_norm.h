#pragma once

#include "backends/cuda/kernels/by_channel.h"
#include "backends/cuda/kernels/channel_sums.h"
#include "backends/cuda/kernels/element.h"

// Code that the kernels of batch norm's ops share with those of its regions. Elements are computed in float, and
// those of float64 in double, with products that are not rounded before an addition.

namespace plexaura::cuda {

// The type of values with one element for each channel.
template <class T>
using Statistic = Compute<T>;

// The moments of each channel. The sums of a split add differences from a number near its mean, and the splits'
// sums are converted to differences from the channel's first element. The address of an output that no one
// reads is null.
template <class T>
struct MomentsTerms {
  Global<const T> src;
  Global<Statistic<T>> mean;
  Global<Statistic<T>> variance;
  Global<Statistic<T>> inverse;
  double epsilon;
  Channels of;

  using Number = Statistic<T>;
  static constexpr bool centres = true;
  static constexpr int groups_at_once = 2;
  static constexpr int blocks_at_once = 3;

  template <int own, class CentreOf>
  PLEXAURA_DEVICE OfChannels<Number, own> of_channels(std::int64_t, const CentreOf& centre) const {
    OfChannels<Number, own> numbers;
    for (int k = 0; k < own; ++k) numbers.of[k] = centre(k);
    return numbers;
  }
  template <int width>
  PLEXAURA_DEVICE Several<T, width> read(std::int64_t place) const {
    return src.template several<width>(place);
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE Addends<Number, width> addends(std::int64_t, const Numbers& centre,
                                                 const Several<T, width>& x) const {
    Addends<Number, width> added;
    for (int k = 0; k < width; ++k) added.value[k] = added.factor[k] = widen(x[k]) - centre[k];
    return added;
  }

  PLEXAURA_DEVICE double first_of(std::int64_t channel) const {
    return of.count() > 0 ? static_cast<double>(widen(src[channel * of.run])) : 0.0;
  }
  PLEXAURA_DEVICE TwoSums of_split(std::int64_t channel, const TwoSums& sums, Number centre,
                                   double count) const {
    const double moved = static_cast<double>(centre) - first_of(channel);
    return {sums.first + count * moved, sums.second + moved * (2 * sums.first + count * moved)};
  }

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

  struct Of {
    Statistic<T> mean;
    Statistic<T> factor;
    Statistic<T> shift;

    PLEXAURA_DEVICE T operator()(T x) const {
      return narrow<T>(multiply_add(widen(x) - mean, factor, shift));
    }
  };

  template <int own>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t c) const {
    const auto scales = scale.template several<own>(c);
    const auto shifts = shift.template several<own>(c);
    const auto means = mean.template several<own>(c);
    const auto inverses = inverse.template several<own>(c);
    OfChannels<Of, own> numbers;
    for (int k = 0; k < own; ++k) numbers.of[k] = {means[k], scales[k] * inverses[k], shifts[k]};
    return numbers;
  }
};

// The gradients of normalise(): by x that of each element, and by the others from the sum of a channel's
// gradients and the sum of their products with x - mean.
template <class T>
struct NormalGrad {
  Global<const Statistic<T>> scale;
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;

  struct Of {
    Statistic<T> factor;

    PLEXAURA_DEVICE T operator()(T grad) const { return narrow<T>(widen(grad) * factor); }
  };

  template <int own>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t c) const {
    const auto scales = scale.template several<own>(c);
    const auto inverses = inverse.template several<own>(c);
    OfChannels<Of, own> numbers;
    for (int k = 0; k < own; ++k) numbers.of[k] = {scales[k] * inverses[k]};
    return numbers;
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
// ChannelGrads. `grad` computes the gradient of the result: grad.values<width>(place, of, read, x) returns that
// of the group at a place, where read is grad.read<width>(place), and of(k) are the numbers of element k's
// channel as grad.of_channels<own>(channel) returns them.
template <class T, class Grad>
struct NormaliseGradTerms {
  Global<const T> src;
  NormalGrad<T> normal;
  Grad grad;
  ChannelGrads<T> grads;

  using Number = Statistic<T>;
  static constexpr bool centres = false;
  static constexpr int groups_at_once = 1;
  static constexpr int blocks_at_once = 3;

  struct Of {
    Number mean;
    typename Grad::Of grad;
  };
  template <int width>
  struct Read {
    Several<T, width> x;
    typename Grad::template Read<width> grad;
  };

  template <int own, class CentreOf>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t c, const CentreOf&) const {
    const auto means = normal.mean.template several<own>(c);
    const auto of_grad = grad.template of_channels<own>(c);
    OfChannels<Of, own> numbers;
    for (int k = 0; k < own; ++k) numbers.of[k] = {means[k], of_grad.of[k]};
    return numbers;
  }
  template <int width>
  PLEXAURA_DEVICE Read<width> read(std::int64_t place) const {
    return {src.template several<width>(place), grad.template read<width>(place)};
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE Addends<Number, width> addends(std::int64_t place, const Numbers& of,
                                                 const Read<width>& read) const {
    const auto of_grad = [&](int k) -> const typename Grad::Of& { return of[k].grad; };
    const Several<T, width> grads_of = grad.template values<width>(place, of_grad, read.grad, read.x);
    Addends<Number, width> added;
    for (int k = 0; k < width; ++k) {
      added.value[k] = widen(grads_of[k]);
      added.factor[k] = widen(read.x[k]) - of[k].mean;
    }
    return added;
  }
  PLEXAURA_DEVICE TwoSums of_split(std::int64_t, const TwoSums& sums, Number, double) const { return sums; }

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

  static constexpr int blocks_at_once = 4;

  struct Of {};
  template <int width>
  using Read = Several<T, width>;

  template <int own>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t) const {
    return {};
  }
  template <int width>
  PLEXAURA_DEVICE Several<T, width> read(std::int64_t place) const {
    return grad.template several<width>(place);
  }
  template <int width, class Numbers>
  PLEXAURA_DEVICE Several<T, width> values(std::int64_t, const Numbers&, const Several<T, width>& read,
                                           const Several<T, width>&) const {
    return read;
  }
};

// Returns 1 / the number of elements of a channel; infinity if there are none.
template <class Number>
Number share_of(const Channels& of) {
  return static_cast<Number>(1.0 / static_cast<double>(of.count()));
}

// The gradient of moments() by the elements of a channel.
template <class T>
struct MomentsGrad {
  Global<const Statistic<T>> mean;
  Global<const Statistic<T>> inverse;
  Global<const Statistic<T>> diff_mean;
  Global<const Statistic<T>> diff_inverse;
  Statistic<T> share;  // share_of() the channels

  struct Of {
    Statistic<T> mean;
    Statistic<T> level;
    Statistic<T> slope;

    PLEXAURA_DEVICE T operator()(T x) const { return narrow<T>(multiply_add(widen(x) - mean, slope, level)); }
  };

  // The inverse and its gradient may be very large and very small, but their product is not. So they are multiplied first.
  template <int own>
  PLEXAURA_DEVICE OfChannels<Of, own> of_channels(std::int64_t c) const {
    const auto means = mean.template several<own>(c);
    const auto inverses = inverse.template several<own>(c);
    const auto levels = diff_mean.template several<own>(c);
    const auto tilts = diff_inverse.template several<own>(c);
    OfChannels<Of, own> numbers;
    for (int k = 0; k < own; ++k) {
      const Statistic<T> along = inverses[k] * tilts[k] * share;
      numbers.of[k] = {means[k], levels[k] * share, -(inverses[k] * (inverses[k] * along))};
    }
    return numbers;
  }
};

}  // namespace plexaura::cuda
