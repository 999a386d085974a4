#pragma once

#include <cstdint>
#include <numeric>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/joins.h"
#include "backends/cuda/kernels/splits.h"
#include "backends/cuda/kernels/strides.h"

// Kernels that compute two sums over the elements of each channel, split over several blocks, and kernels
// that process each element with the numbers of its channel.

namespace plexaura::cuda {

// Returns a / b for numbers that are not negative. nvcc also divides small 64-bit numbers in 32 bits, but it
// then keeps so many registers for the others that fewer threads of a GPU can run these kernels at once.
PLEXAURA_HD inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (((a | b) >> 32) != 0) return a / b;
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b));
}

// A value x, viewed as [samples, channels, run]: a channel consists of one run of elements in each sample.
struct Channels {
  // Takes the shape of images with channels last, or of row-major values [N, C, ...].
  Channels(const Shape& x, bool channels_last)
      : samples(channels_last ? x[0] * stride_of(x, 1) : x[0]),
        channels(x[1]),
        run(channels_last ? 1 : stride_of(x, 1)) {
    splits = splits_of(tiles(), count(), elements_at_once());
  }

  PLEXAURA_HD std::int64_t count() const { return samples * run; }  // number of elements of a channel
  PLEXAURA_DEVICE std::int64_t place(std::int64_t channel, std::int64_t i) const {
    const std::int64_t sample = quotient(i, run);
    return (sample * channels + channel) * run + i - sample * run;
  }
  PLEXAURA_DEVICE std::int64_t channel_of(std::int64_t place) const {
    const std::int64_t plane = quotient(place, run);
    return plane - quotient(plane, channels) * channels;
  }

  // True if channels are the innermost axis. Then a block adds up several channels at once.
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

// The sums of all splits of all channels.
struct ChannelSums {
  Global<double> parts;  // the sums of each split, [splits, 2, channels]
  // For each tile, the number of blocks that have stored their sums; 0 before and after the kernel.
  Global<std::uint32_t> arrived;
  Channels of;

  static std::int64_t count(const Channels& of) { return 2 * of.splits * of.channels; }

  PLEXAURA_DEVICE void store(std::int64_t split, std::int64_t channel, const TwoSums& sums) const {
    parts[2 * split * of.channels + channel] = sums.first;
    parts[(2 * split + 1) * of.channels + channel] = sums.second;
  }
  // Adds up the sums of every `step`-th split, from `first` on.
  PLEXAURA_DEVICE TwoSums sum_of_splits(std::int64_t channel, std::int64_t first, std::int64_t step) const {
    TwoSums sum;
    for (std::int64_t split = first; split < of.splits; split += step)
      sum += {parts[2 * split * of.channels + channel], parts[(2 * split + 1) * of.channels + channel]};
    return sum;
  }
  // True if this thread's block, which has stored its sums, is the last one of the tile.
  PLEXAURA_DEVICE bool is_last(std::int64_t tile) const {
    return of.splits == 1 || arrive(arrived.shared(tile), static_cast<std::uint32_t>(of.splits));
  }
};

// Adds up the pairs of numbers that threads of a block have stored, at the places first, first + step, ...
// below `end`.
template <class Firsts, class Seconds>
PLEXAURA_DEVICE inline TwoSums sum_from(Firsts& firsts, Seconds& seconds, int first, int end, int step) {
  TwoSums sum;
  for (int i = first; i < end; i += step)
    sum += {static_cast<double>(firsts[i]), static_cast<double>(seconds[i])};
  return sum;
}

// Calls of(place, of.read(place)) for the places place_of(i), with i from `begin` in steps. Several elements
// are read before the first one is used, so that a thread waits for memory only once.
template <class OfChannel, class PlaceOf>
PLEXAURA_DEVICE inline void visit(OfChannel& of, std::int64_t begin, std::int64_t end, std::int64_t step,
                                  const PlaceOf& place_of) {
  constexpr int at_once = 4;
  std::int64_t i = begin;
  for (; i + (at_once - 1) * step < end; i += at_once * step) {
    decltype(of.read(0)) read[at_once];
    for (int k = 0; k < at_once; ++k) read[k] = of.read(place_of(i + k * step));
    for (int k = 0; k < at_once; ++k) of(place_of(i + k * step), read[k]);
  }
  for (; i < end; i += step) of(place_of(i), of.read(place_of(i)));
}

// Adds up the terms of the elements for which it is called.
template <class OfChannel>
struct SumOfTerms {
  OfChannel terms;
  TwoSums sum;

  PLEXAURA_DEVICE auto read(std::int64_t place) const { return terms.read(place); }
  template <class Read>
  PLEXAURA_DEVICE void operator()(std::int64_t place, const Read& read) {
    sum += terms(place, read);
  }
};

// `terms` defines the sums. terms.of_channel(channel) returns an object `of` with the numbers of a channel.
// of(place, of.read(place)) returns the two terms of the element at a place; it is called once for each
// element. terms.finish(channel, sums) is called once for each channel.
template <class Terms>
struct SumsOfRunsKernel {
  Terms terms;
  ChannelSums sums;

  static constexpr int finishers = 32;  // number of threads that add up splits

  PLEXAURA_DEVICE TwoSums sum_of_run(std::int64_t split, int thread, std::int64_t channel) const {
    SumOfTerms<decltype(terms.of_channel(0))> sum{terms.of_channel(channel), {}};
    visit(sum, sums.of.first_of(split) + thread, sums.of.first_of(split + 1), threads,
          [&](std::int64_t i) { return sums.of.place(channel, i); });
    return sum.sum;
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

// Computes the sums if channels are the innermost axis. Neighbouring threads read neighbouring channels of a
// row.
template <class Terms>
struct SumsOfRowsKernel {
  Terms terms;
  ChannelSums sums;

  PLEXAURA_DEVICE TwoSums sum_of_rows(std::int64_t split, int first, std::int64_t channel) const {
    SumOfTerms<decltype(terms.of_channel(0))> sum{terms.of_channel(channel), {}};
    const Channels& of = sums.of;
    visit(sum, of.first_of(split) + first, of.first_of(split + 1), Channels::rows_at_once,
          [&](std::int64_t row) { return row * of.channels + channel; });
    return sum.sum;
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

// Applies the object terms.of_channel(channel) to each element of the channel. If possible, a thread stays in
// one channel.
template <class Terms>
struct ByChannelKernel {
  Terms terms;
  Channels of;

  // Elements of a plane that one block processes, at least.
  static constexpr std::int64_t fewest_elements = threads / 2;
  static constexpr std::int64_t fewest_planes = most_arrivals;  // planes that are needed to fill a GPU

  PLEXAURA_HD bool takes_planes() const {
    return of.run >= fewest_elements && of.samples * of.channels >= fewest_planes;
  }

  std::int64_t blocks() const {
    if (takes_planes()) return blocks_of_sums(of.samples * of.channels);
    constexpr std::int64_t of_a_thread = 8;
    const std::int64_t most = blocks_for((of.count() * of.channels + of_a_thread - 1) / of_a_thread);
    const std::int64_t in_turn = of.channels / std::gcd(of.channels, std::int64_t{threads});
    return most < in_turn ? most : most - most % in_turn;
  }

  PLEXAURA_DEVICE void visit_planes(std::int64_t first_plane, std::int64_t step, int thread) const {
    for (std::int64_t plane = first_plane; plane < of.samples * of.channels; plane += step) {
      const auto element = terms.of_channel(plane - quotient(plane, of.channels) * of.channels);
      visit(element, plane * of.run + thread, (plane + 1) * of.run, threads,
            [](std::int64_t i) { return i; });
    }
  }

  PLEXAURA_DEVICE void visit_each(std::int64_t first, std::int64_t step) const {
    const std::int64_t end = of.count() * of.channels;
    if (first >= end) return;
    if (of.run == 1 && step % of.channels == 0) {
      const auto element = terms.of_channel(of.channel_of(first));
      return visit(element, first, end, step, [](std::int64_t i) { return i; });
    }
    for (std::int64_t i = first; i < end; i += step) {
      const auto element = terms.of_channel(of.channel_of(i));
      element(i, element.read(i));
    }
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    block.each_thread([&](int thread) {
      if (takes_planes())
        visit_planes(block.index(), block.blocks(), thread);
      else
        visit_each(block.index() * threads + thread, block.blocks() * threads);
    });
  }
};

template <class Terms>
void enqueue_by_channel(const Call& call, const Channels& of, const Terms& terms) {
  const ByChannelKernel<Terms> kernel{terms, of};
  if (of.count() * of.channels > 0) enqueue(call, kernel.blocks(), kernel);
}

// Enqueues the kernel that computes the sums and finishes them. The sums of the splits are stored in the
// workspace.
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
