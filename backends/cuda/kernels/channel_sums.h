#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/strides.h"

// Two sums over the elements of each channel. The elements are cut into `splits`, each of which a block sums up by itself,
// and whoever needs the whole sums adds these up in their order.

namespace plexaura::cuda {

// x as [samples, channels, run]: the elements of a channel are runs, one for each sample.
struct Channels {
  // Of images that lie channels last, or of row-major values [N, C, ...].
  Channels(const Shape& x, bool channels_last)
      : samples(channels_last ? x[0] * stride_of(x, 1) : x[0]),
        channels(x[1]),
        run(channels_last ? 1 : stride_of(x, 1)) {
    constexpr std::int64_t enough_blocks = 1024;
    constexpr std::int64_t rounds = 16;  // of a block, so that a split is worth its while
    const std::int64_t most = std::max<std::int64_t>(enough_blocks / std::max<std::int64_t>(tiles(), 1), 1);
    splits = std::clamp<std::int64_t>(count() / (rounds * elements_at_once()), 1, most);
  }

  PLEXAURA_HD std::int64_t count() const { return samples * run; }  // elements of a channel
  PLEXAURA_DEVICE std::int64_t place(std::int64_t channel, std::int64_t i) const {
    return (i / run * channels + channel) * run + i % run;
  }
  PLEXAURA_DEVICE std::int64_t channel_of(std::int64_t place) const { return place / run % channels; }

  // Where channels lie beside each other a block sums up several at once.
  bool innermost() const { return run == 1; }
  static constexpr int channels_at_once = 32;
  static constexpr int rows_at_once = threads / channels_at_once;
  std::int64_t elements_at_once() const { return innermost() ? rows_at_once : threads; }
  PLEXAURA_HD std::int64_t tiles() const {
    return run == 1 ? (channels + channels_at_once - 1) / channels_at_once : channels;
  }

  PLEXAURA_HD std::int64_t first_of(std::int64_t split) const { return count() * split / splits; }

  std::int64_t samples;
  std::int64_t channels;
  std::int64_t run;
  std::int64_t splits = 1;
};

struct TwoSums {
  double first = 0;
  double second = 0;

  PLEXAURA_DEVICE TwoSums& operator+=(const TwoSums& other) {
    first += other.first;
    second += other.second;
    return *this;
  }
};

// The sums of each split.
struct ChannelSums {
  Global<double> parts;  // [splits, 2, channels]
  Channels of;

  static std::int64_t count(const Channels& of) { return 2 * of.splits * of.channels; }

  PLEXAURA_DEVICE void store(std::int64_t split, std::int64_t channel, double first, double second) const {
    parts[2 * split * of.channels + channel] = first;
    parts[(2 * split + 1) * of.channels + channel] = second;
  }
  PLEXAURA_DEVICE TwoSums total(std::int64_t channel) const {
    TwoSums total;
    for (std::int64_t split = 0; split < of.splits; ++split)
      total += {parts[2 * split * of.channels + channel], parts[(2 * split + 1) * of.channels + channel]};
    return total;
  }
};

// terms(place, channel) gives the two terms of the element at a place.
template <class Terms>
struct SumsOfRunsKernel {
  Terms terms;
  ChannelSums sums;

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, firsts, threads);
    PLEXAURA_SHARED(block, double, seconds, threads);
    const Channels& of = sums.of;
    const auto add = [](double a, double b) { return a + b; };
    for (std::int64_t item = block.index(); item < of.channels * of.splits; item += block.blocks()) {
      const std::int64_t channel = item % of.channels;
      const std::int64_t split = item / of.channels;
      block.each_thread([&](int thread) {
        TwoSums sum;
        for (std::int64_t i = of.first_of(split) + thread; i < of.first_of(split + 1); i += threads)
          sum += terms(of.place(channel, i), channel);
        firsts[thread] = sum.first;
        seconds[thread] = sum.second;
      });
      join_all<double>(block, firsts, add);
      join_all<double>(block, seconds, add);
      block.each_thread([&](int thread) {
        if (thread == 0)
          sums.store(split, channel, static_cast<double>(firsts[0]), static_cast<double>(seconds[0]));
      });
    }
  }
};

// Neighbouring threads read neighbouring channels of a row.
template <class Terms>
struct SumsOfRowsKernel {
  Terms terms;
  ChannelSums sums;

  PLEXAURA_DEVICE TwoSums sum_of_rows(std::int64_t split, int first, std::int64_t channel) const {
    TwoSums sum;
    const Channels& of = sums.of;
    const std::int64_t end = of.first_of(split + 1);
    for (std::int64_t row = of.first_of(split) + first; row < end; row += Channels::rows_at_once)
      sum += terms(row * of.channels + channel, channel);
    return sum;
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, firsts, threads);
    PLEXAURA_SHARED(block, double, seconds, threads);
    const Channels& of = sums.of;
    for (std::int64_t item = block.index(); item < of.tiles() * of.splits; item += block.blocks()) {
      const std::int64_t split = item / of.tiles();
      const std::int64_t first_channel = item % of.tiles() * Channels::channels_at_once;
      block.each_thread([&](int thread) {
        const std::int64_t channel = first_channel + thread % Channels::channels_at_once;
        TwoSums sum;
        if (channel < of.channels) sum = sum_of_rows(split, thread / Channels::channels_at_once, channel);
        firsts[thread] = sum.first;
        seconds[thread] = sum.second;
      });
      block.each_thread([&](int thread) {
        const std::int64_t channel = first_channel + thread;
        if (thread >= Channels::channels_at_once || channel >= of.channels) return;
        TwoSums sum;
        for (int i = thread; i < threads; i += Channels::channels_at_once)
          sum += {static_cast<double>(firsts[i]), static_cast<double>(seconds[i])};
        sums.store(split, channel, sum.first, sum.second);
      });
    }
  }
};

// Enqueues what makes the sums, which lie at `parts`.
template <class Terms>
ChannelSums enqueue_channel_sums(const Call& call, const Channels& of, Address parts, const Terms& terms) {
  const ChannelSums sums{{parts, ChannelSums::count(of)}, of};
  const std::int64_t blocks = blocks_of_sums(of.tiles() * of.splits);
  if (of.innermost())
    enqueue(call, blocks, SumsOfRowsKernel<Terms>{terms, sums});
  else
    enqueue(call, blocks, SumsOfRunsKernel<Terms>{terms, sums});
  return sums;
}

}  // namespace plexaura::cuda
