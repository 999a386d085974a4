#pragma once

#include <cstdint>

#include "backends/cuda/kernels/channels.h"

// A kernel that computes two sums over the elements of each channel, split over several blocks.

namespace plexaura::cuda {

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
  static std::size_t bytes(const Channels& of) {
    return static_cast<std::size_t>(count(of)) * sizeof(double);
  }

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

// The two numbers that each element of a group adds to the sums of its channel: `value`, and `value` times
// `factor`.
template <class Number, int width>
struct Addends {
  Number value[width];
  Number factor[width];
};

// Adds up the numbers that all threads have stored, `own` each, number k of a thread at k * threads + thread.
// Afterwards the first `kept` threads' numbers are the sums over all threads at a distance of multiples of
// `kept`, a power of two.
template <int own, class... Slots>
PLEXAURA_DEVICE inline void join_threads(Block& block, int kept, Slots&... slots) {
  for (int half = threads / 2; half >= kept; half /= 2)
    block.each_thread([&](int thread) {
      if (thread >= half) return;
      PLEXAURA_ROLLED
      for (int i = thread; i < own * threads; i += threads)
        ((slots[i] += static_cast<double>(slots[i + half])), ...);
    });
}

// `terms` defines the sums. terms.of_channels<own>(channel, centre) returns `of`, the numbers of the channels of
// a group, and terms.addends<width>(place, of, terms.read<width>(place)) the Addends of the group at a place;
// of_channels() is called for each thread, and addends() for each group, twice for the first group of a thread if
// Terms::centres is true. A thread adds up a few of them in float (float64: in double), and all
// else in double. terms.of_split(channel, sums, centre, count) converts the sums of `count` elements, and
// terms.finish(channel, sums) is called once for each channel.
// If Terms::centres is true, centre(k) is a number near the mean of channel k of the group: the mean of the first
// elements of the split. So a single element that is far from all others does not make the centre useless.
template <class Terms, class Groups>
struct ChannelSumsKernel {
  Terms terms;
  ChannelSums sums;

  using Number = typename Terms::Number;
  static constexpr int width = Groups::width;
  static constexpr int own = Groups::own;
  static constexpr int at_once = width > 1 ? Terms::groups_at_once : 4;
  static constexpr int blocks_at_once = width > 1 ? Terms::blocks_at_once : 2;
  // A thread's sums are added in double after this many groups, in which each of its channels has 64 terms.
  static constexpr std::int64_t most_rounds = 64 * own / width;

  // Where a block works: the units [begin, end) of the channels of a tile.
  struct Work {
    std::int64_t split;
    std::int64_t tile;
    std::int64_t begin;
    std::int64_t end;
  };

  PLEXAURA_DEVICE Work work_of(std::int64_t item) const {
    const std::int64_t tiles = sums.of.tiles();
    const std::int64_t split = item / tiles;
    return {split, item - split * tiles, sums.of.first_of(split), sums.of.first_of(split + 1)};
  }
  PLEXAURA_DEVICE int lane_of(int thread) const { return thread & (sums.of.lanes - 1); }
  PLEXAURA_DEVICE int row_of(int thread) const { return thread / sums.of.lanes; }
  PLEXAURA_DEVICE int rows() const { return threads / sums.of.lanes; }
  PLEXAURA_DEVICE std::int64_t first_channel(const Work& work, int thread) const {
    return (work.tile * sums.of.lanes + lane_of(thread)) * own;
  }
  // True if the thread finishes a channel, which is then number `thread` of the tile.
  PLEXAURA_DEVICE bool finishes(const Work& work, int thread) const {
    return thread < sums.of.tile() && work.tile * sums.of.tile() + thread < sums.of.channels;
  }
  // Returns the slot in which join_threads() leaves the sum of a channel of the tile.
  PLEXAURA_DEVICE int slot_of(int channel) const { return channel % own * threads + channel / own; }

  // Adds up the elements of the first unit of each thread, and writes their means.
  template <class Slots, class Centres>
  PLEXAURA_DEVICE void find_centres(Block& block, const Work& work, Slots& slots, Centres& centres) const {
    block.each_thread([&](int thread) {
      for (int k = 0; k < own; ++k) slots[k * threads + thread] = 0;
      const std::int64_t unit = work.begin + row_of(thread);
      const std::int64_t channel = first_channel(work, thread);
      if (unit >= work.end || channel >= sums.of.channels) return;
      const std::int64_t place = sums.of.template place<own>(channel, unit);
      const auto of = terms.template of_channels<own>(channel, [](int) { return Number(0); });
      const auto added = terms.template addends<width>(place, of, terms.template read<width>(place));
      for (int k = 0; k < width; ++k)
        slots[(own == 1 ? 0 : k) * threads + thread] += static_cast<double>(added.value[k]);
    });
    join_threads<own>(block, sums.of.lanes, slots);
    block.each_thread([&](int thread) {
      if (thread >= sums.of.tile()) return;
      const std::int64_t units = work.end - work.begin < rows() ? work.end - work.begin : rows();
      const auto count = static_cast<double>(units * sums.of.elements_of_unit());
      centres[thread] = units > 0 ? static_cast<Number>(slots[slot_of(thread)] / count) : Number(0);
    });
  }

  // Adds up the elements of a thread.
  template <class Slots, class CentreOf>
  PLEXAURA_DEVICE void add_up(const Work& work, int thread, Slots& firsts, Slots& seconds,
                              const CentreOf& centre) const {
    for (int k = 0; k < own; ++k) firsts[k * threads + thread] = seconds[k * threads + thread] = 0;
    const std::int64_t channel = first_channel(work, thread);
    if (channel >= sums.of.channels) return;
    const auto of = terms.template of_channels<own>(channel, centre);
    const std::int64_t step = rows();
    for (std::int64_t begin = work.begin + row_of(thread); begin < work.end; begin += most_rounds * step) {
      Number first[own] = {};
      Number second[own] = {};
      const std::int64_t end = begin + most_rounds * step < work.end ? begin + most_rounds * step : work.end;
      visit<at_once>(
          begin, end, step, [&](std::int64_t unit) { return sums.of.template place<own>(channel, unit); },
          [&](std::int64_t place) { return terms.template read<width>(place); },
          [&](std::int64_t place, const auto& read) {
            const auto added = terms.template addends<width>(place, of, read);
            for (int k = 0; k < width; ++k) {
              const int to = own == 1 ? 0 : k;
              first[to] += added.value[k];
              second[to] = multiply_add(added.value[k], added.factor[k], second[to]);
            }
          });
      for (int k = 0; k < own; ++k) {
        firsts[k * threads + thread] += static_cast<double>(first[k]);
        seconds[k * threads + thread] += static_cast<double>(second[k]);
      }
    }
  }

  // Stores the sums of the split. Returns true if those of all splits of the tile are stored.
  template <class Slots, class Centres, class Last>
  PLEXAURA_DEVICE bool store(Block& block, const Work& work, Slots& firsts, Slots& seconds, Centres& centres,
                             Last& last) const {
    block.each_thread([&](int thread) {
      if (!finishes(work, thread)) return;
      const TwoSums of_split{firsts[slot_of(thread)], seconds[slot_of(thread)]};
      const std::int64_t channel = work.tile * sums.of.tile() + thread;
      const auto count = static_cast<double>((work.end - work.begin) * sums.of.elements_of_unit());
      Number centre = 0;
      if constexpr (Terms::centres) centre = centres[thread];
      sums.store(work.split, channel, terms.of_split(channel, of_split, centre, count));
    });
    block.each_thread([&](int thread) {
      if (thread == 0) last[0] = sums.is_last(work.tile);
    });
    return last[0];
  }

  template <class Slots>
  PLEXAURA_DEVICE void finish(Block& block, const Work& work, Slots& firsts, Slots& seconds) const {
    const int tile = sums.of.tile();
    block.each_thread([&](int thread) {
      const std::int64_t channel = work.tile * tile + thread % tile;
      TwoSums sum;
      if (channel < sums.of.channels) sum = sums.sum_of_splits(channel, thread / tile, threads / tile);
      firsts[thread] = sum.first;
      seconds[thread] = sum.second;
    });
    join_threads<1>(block, tile, firsts, seconds);
    block.each_thread([&](int thread) {
      if (finishes(work, thread))
        terms.finish(work.tile * tile + thread, TwoSums{firsts[thread], seconds[thread]});
    });
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    PLEXAURA_SHARED(block, double, firsts, own* threads);
    PLEXAURA_SHARED(block, double, seconds, own* threads);
    PLEXAURA_SHARED(block, Number, centres, Channels::most_in_tile);
    PLEXAURA_SHARED(block, bool, last, 1);
    for (std::int64_t item = block.index(); item < sums.of.tiles() * sums.of.splits; item += block.blocks()) {
      const Work work = work_of(item);
      if constexpr (Terms::centres) find_centres(block, work, firsts, centres);
      block.each_thread([&](int thread) {
        add_up(work, thread, firsts, seconds, [&](int k) { return centres[lane_of(thread) * own + k]; });
      });
      join_threads<own>(block, sums.of.lanes, firsts, seconds);
      if (store(block, work, firsts, seconds, centres, last)) finish(block, work, firsts, seconds);
    }
  }
};

// Enqueues the kernel that computes the sums and finishes them. The sums of the splits are stored in the
// workspace.
template <class T, class Terms>
void enqueue_channel_sums(const Call& call, const Channels& of, const Terms& terms) {
  const ChannelSums sums{{call.workspace, ChannelSums::count(of)}, {call.arrivals, most_arrivals}, of};
  dispatch_groups<T>(of, [&](auto groups) {
    enqueue(call, blocks_of_sums(of.tiles() * of.splits),
            ChannelSumsKernel<Terms, decltype(groups)>{terms, sums});
  });
}

}  // namespace plexaura::cuda
