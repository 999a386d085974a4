#pragma once

#include <cstdint>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/splits.h"
#include "backends/cuda/kernels/strides.h"

// Two sums over the elements of each channel, in splits.

namespace plexaura::cuda {

// x as [samples, channels, run]: the elements of a channel are runs, one for each sample.
struct Channels {
  // Of images that lie channels last, or of row-major values [N, C, ...].
  Channels(const Shape& x, bool channels_last)
      : samples(channels_last ? x[0] * stride_of(x, 1) : x[0]),
        channels(x[1]),
        run(channels_last ? 1 : stride_of(x, 1)) {
    splits = splits_of(tiles(), count(), elements_at_once());
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

  PLEXAURA_HD std::int64_t first_of(std::int64_t split) const {
    return first_of_split(count(), split, splits);
  }

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
  Global<std::uint32_t>
      arrived;  // blocks that have left their sums, of each tile; zeros before and behind the kernel
  Channels of;

  static std::int64_t count(const Channels& of) { return 2 * of.splits * of.channels; }

  PLEXAURA_DEVICE void store(std::int64_t split, std::int64_t channel, const TwoSums& sums) const {
    parts[2 * split * of.channels + channel] = sums.first;
    parts[(2 * split + 1) * of.channels + channel] = sums.second;
  }
  // Of every `step`-th split.
  PLEXAURA_DEVICE TwoSums sum_of_splits(std::int64_t channel, std::int64_t first, std::int64_t step) const {
    TwoSums sum;
    for (std::int64_t split = first; split < of.splits; split += step)
      sum += {parts[2 * split * of.channels + channel], parts[(2 * split + 1) * of.channels + channel]};
    return sum;
  }
  // Whether the block of this thread, which has stored its sums, is the last one of the tile.
  PLEXAURA_DEVICE bool is_last(std::int64_t tile) const {
    return of.splits == 1 || arrive(arrived.shared(tile), static_cast<std::uint32_t>(of.splits));
  }
};

// Two numbers for each thread of a block.
template <class Firsts, class Seconds>
PLEXAURA_DEVICE inline TwoSums sum_from(Firsts& firsts, Seconds& seconds, int first, int end, int step) {
  TwoSums sum;
  for (int i = first; i < end; i += step)
    sum += {static_cast<double>(firsts[i]), static_cast<double>(seconds[i])};
  return sum;
}

// Terms: terms(place, channel) gives the two terms of the element at a place, once for each element, and terms.finish(channel,
// sums) does what is to be done with the sums, once for each channel.
template <class Terms>
struct SumsOfRunsKernel {
  Terms terms;
  ChannelSums sums;

  static constexpr int finishers = 32;  // threads that add up splits

  PLEXAURA_DEVICE TwoSums sum_of_run(std::int64_t split, int thread, std::int64_t channel) const {
    TwoSums sum;
    for (std::int64_t i = sums.of.first_of(split) + thread; i < sums.of.first_of(split + 1); i += threads)
      sum += terms(sums.of.place(channel, i), channel);
    return sum;
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, firsts, threads);
    PLEXAURA_SHARED(block, double, seconds, threads);
    PLEXAURA_SHARED(block, bool, last, 1);
    const auto add = [](double a, double b) { return a + b; };
    for (std::int64_t item = block.index(); item < sums.of.channels * sums.of.splits;
         item += block.blocks()) {
      const std::int64_t channel = item % sums.of.channels;
      const std::int64_t split = item / sums.of.channels;
      block.each_thread([&](int thread) {
        const TwoSums sum = sum_of_run(split, thread, channel);
        firsts[thread] = sum.first;
        seconds[thread] = sum.second;
      });
      join_all<double>(block, firsts, add);
      join_all<double>(block, seconds, add);
      block.each_thread([&](int thread) {
        if (thread > 0) return;
        sums.store(split, channel, sum_from(firsts, seconds, 0, 1, 1));
        last[0] = sums.is_last(channel);
      });
      block.each_thread([&](int thread) {
        if (!last[0] || thread >= finishers) return;
        const TwoSums sum = sums.sum_of_splits(channel, thread, finishers);
        firsts[thread] = sum.first;
        seconds[thread] = sum.second;
      });
      block.each_thread([&](int thread) {
        if (last[0] && thread == 0) terms.finish(channel, sum_from(firsts, seconds, 0, finishers, 1));
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
    PLEXAURA_SHARED(block, bool, last, 1);
    constexpr int at_once = Channels::channels_at_once;
    const Channels& of = sums.of;
    for (std::int64_t item = block.index(); item < of.tiles() * of.splits; item += block.blocks()) {
      const std::int64_t split = item / of.tiles();
      const std::int64_t tile = item % of.tiles();
      const auto channel_of = [&](int thread) { return tile * at_once + thread % at_once; };
      const auto keep = [&](int thread, const TwoSums& sum) {
        firsts[thread] = sum.first;
        seconds[thread] = sum.second;
      };
      block.each_thread([&](int thread) {
        const bool exists = channel_of(thread) < of.channels;
        keep(thread, exists ? sum_of_rows(split, thread / at_once, channel_of(thread)) : TwoSums());
      });
      block.each_thread([&](int thread) {
        if (thread < at_once && channel_of(thread) < of.channels)
          sums.store(split, channel_of(thread), sum_from(firsts, seconds, thread, threads, at_once));
      });
      block.each_thread([&](int thread) {
        if (thread == 0) last[0] = sums.is_last(tile);
      });
      block.each_thread([&](int thread) {
        if (last[0] && channel_of(thread) < of.channels)
          keep(thread, sums.sum_of_splits(channel_of(thread), thread / at_once, Channels::rows_at_once));
      });
      block.each_thread([&](int thread) {
        if (last[0] && thread < at_once && channel_of(thread) < of.channels)
          terms.finish(channel_of(thread), sum_from(firsts, seconds, thread, threads, at_once));
      });
    }
  }
};

// Enqueues what makes the sums, whose parts lie in the workspace, and finishes them.
template <class Terms>
void enqueue_channel_sums(const Call& call, const Channels& of, const Terms& terms) {
  const ChannelSums sums{{call.workspace, ChannelSums::count(of)}, {call.arrivals, most_arrivals}, of};
  const std::int64_t blocks = blocks_of_sums(of.tiles() * of.splits);
  if (of.innermost())
    enqueue(call, blocks, SumsOfRowsKernel<Terms>{terms, sums});
  else
    enqueue(call, blocks, SumsOfRunsKernel<Terms>{terms, sums});
}

}  // namespace plexaura::cuda
