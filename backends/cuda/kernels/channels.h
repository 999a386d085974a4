#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/kernels/splits.h"
#include "backends/cuda/kernels/strides.h"

// A value whose elements belong to channels, and the groups of consecutive elements in which threads read it.

namespace plexaura::cuda {

// Returns a / b for numbers that are not negative. nvcc also divides small 64-bit numbers in 32 bits, but it
// then keeps so many registers for the others that fewer threads of a GPU can run these kernels at once.
PLEXAURA_HD inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) != 0) return a / b;
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b));
}

// A value x, viewed as [samples, channels, run]: a channel consists of one run of elements in each sample. A
// thread reads `width` consecutive elements at once, a group. They belong to as many channels if channels are
// the innermost axis, and to one channel otherwise. Groups are aligned, because every value begins at a multiple
// of 64 bytes. How x is divided depends on its type and layout alone, and so do the bits of sums.
struct Channels {
  // Takes the type of images with channels last, or of row-major values [N, C, ...]. No group crosses a multiple of `row`
  // elements, unless that is 0.
  Channels(const TensorType& x, bool channels_last, std::int64_t row = 0)
      : samples(channels_last ? x.shape[0] * stride_of(x.shape, 1) : x.shape[0]),
        channels(x.shape[1]),
        run(channels_last ? 1 : stride_of(x.shape, 1)),
        width(width_of(x.dtype, row)) {
    if (innermost()) {
      const std::int64_t most = width > 1 ? most_wide_lanes : most_lanes;
      const std::int64_t groups = std::clamp<std::int64_t>(channels / own(), 1, most);
      lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(groups)));
    }
    splits = splits_of(tiles(), units(), threads / lanes, width > 1 ? rounds_of_groups : rounds_of_split);
  }

  PLEXAURA_HD bool innermost() const { return run == 1; }
  PLEXAURA_HD std::int64_t count() const { return samples * run; }  // number of elements of a channel
  PLEXAURA_HD int own() const { return innermost() ? width : 1; }   // number of channels of a group

  // A block adds up a tile of channels: `lanes` neighbouring threads read `lanes` neighbouring groups.
  PLEXAURA_HD int tile() const { return lanes * own(); }
  PLEXAURA_HD std::int64_t tiles() const { return (channels + tile() - 1) / tile(); }

  // The elements of a channel are numbered by units, each in another group.
  PLEXAURA_HD std::int64_t elements_of_unit() const { return innermost() ? 1 : width; }
  PLEXAURA_HD std::int64_t units() const { return count() / elements_of_unit(); }
  PLEXAURA_HD std::int64_t first_of(std::int64_t split) const {
    return first_of_split(units(), split, splits);
  }

  // Returns the place of the first element of a group of `own` channels, the first of which is given.
  template <int own>
  PLEXAURA_DEVICE std::int64_t place(std::int64_t channel, std::int64_t unit) const {
    if (own > 1 || innermost()) return unit * channels + channel;
    const std::int64_t of_run = quotient(run, width);
    const std::int64_t sample = quotient(unit, of_run);
    return (sample * channels + channel) * run + (unit - sample * of_run) * width;
  }
  template <int own>
  PLEXAURA_DEVICE std::int64_t channel_of(std::int64_t place) const {
    const std::int64_t plane = own > 1 ? place : quotient(place, run);
    return plane - quotient(plane, channels) * channels;
  }

  static constexpr int most_lanes = 32;
  static constexpr int most_wide_lanes = 8;  // these read 128 bytes
  static constexpr int most_in_tile = 64;
  // Least number of rounds of a split in which each thread reads a group.
  static constexpr std::int64_t rounds_of_groups = 8;

  std::int64_t samples;
  std::int64_t channels;
  std::int64_t run;
  int width;
  int lanes = 1;
  std::int64_t splits = 1;

 private:
  // Row-major images of 16 bits have no groups, because convolutions in 16 bits make channels last. Nor has
  // float64.
  int width_of(DType dtype, std::int64_t row) const {
    const std::int64_t extent = innermost() ? channels : run;
    const int widest = dtype == DType::float32 ? 4 : size_of(dtype) == 2 && innermost() ? 8 : 1;
    return extent % widest == 0 && row % widest == 0 ? widest : 1;
  }
};

// The elements that are computed at once: `elements` of them, which belong to `channels` channels.
template <int elements, int channels>
struct Groups {
  static constexpr int width = elements;
  static constexpr int own = channels;
};

// Calls f(Groups<...>()) for the groups of x, whose elements are T.
template <class T, class F>
void dispatch_groups(const Channels& x, const F& f) {
  if constexpr (!std::is_same_v<T, double>) {
    constexpr int widest = std::is_same_v<T, float> ? 4 : 8;
    if (x.width == widest && x.innermost()) return f(Groups<widest, widest>());
  }
  if constexpr (std::is_same_v<T, float>)
    if (x.width == 4) return f(Groups<4, 1>());
  f(Groups<1, 1>());
}

// The numbers that a group of elements needs of its channels: one for each element, or one for all.
template <class Of, int channels>
struct OfChannels {
  Of of[channels];

  PLEXAURA_DEVICE const Of& operator[](int element) const { return of[channels == 1 ? 0 : element]; }
};

}  // namespace plexaura::cuda
