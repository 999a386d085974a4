#pragma once

#include <cstdint>
#include <numeric>

#include "backends/cuda/kernels/channels.h"

// A kernel that processes each element with the numbers of its channel.

namespace plexaura::cuda {

// Calls terms.apply<width>(place, of, terms.read<width>(place)) for each group, where `of` is
// terms.of_channels<own>(channel). If possible, a thread stays in the same channels; always if groups have several.
template <class Terms, class Groups>
struct ByChannelKernel {
  Terms terms;
  Channels of;

  static constexpr int width = Groups::width;
  static constexpr int own = Groups::own;
  static constexpr int at_once = width > 1 ? 1 : 4;
  static constexpr int blocks_at_once = width > 1 ? Terms::blocks_at_once : 2;
  // Groups of a plane that one block processes, at least.
  static constexpr std::int64_t fewest_groups = threads / 2;
  static constexpr std::int64_t fewest_planes = most_arrivals;  // planes that are needed to fill a GPU

  PLEXAURA_HD bool takes_planes() const {
    return own == 1 && of.run >= fewest_groups * width && of.samples * of.channels >= fewest_planes;
  }
  PLEXAURA_HD std::int64_t groups() const { return of.count() * of.channels / width; }

  std::int64_t blocks() const {
    if (takes_planes()) return blocks_of_sums(of.samples * of.channels);
    constexpr std::int64_t of_a_thread = 8;
    const std::int64_t most = blocks_for((groups() + of_a_thread - 1) / of_a_thread);
    const std::int64_t in_turn = blocks_in_turn();
    if (most < in_turn) return own > 1 ? in_turn : most;
    return most - most % in_turn;
  }
  // With a multiple of so many blocks a thread stays in the same channels, if these are the innermost axis.
  std::int64_t blocks_in_turn() const {
    const std::int64_t in_row = of.channels / own;
    return in_row / std::gcd(in_row, std::int64_t{threads});
  }

  // Processes every `step`-th of the groups [begin, end), which have the same channels.
  PLEXAURA_DEVICE void visit_alike(std::int64_t begin, std::int64_t end, std::int64_t step,
                                   std::int64_t channel) const {
    const auto numbers = terms.template of_channels<own>(channel);
    visit<at_once>(
        begin, end, step, [](std::int64_t group) { return group * width; },
        [&](std::int64_t place) { return terms.template read<width>(place); },
        [&](std::int64_t place, const auto& read) { terms.template apply<width>(place, numbers, read); });
  }

  PLEXAURA_DEVICE void visit_planes(std::int64_t first_plane, std::int64_t step, int thread) const {
    const std::int64_t in_plane = quotient(of.run, width);
    for (std::int64_t plane = first_plane; plane < of.samples * of.channels; plane += step)
      visit_alike(plane * in_plane + thread, (plane + 1) * in_plane, threads,
                  plane - quotient(plane, of.channels) * of.channels);
  }

  PLEXAURA_DEVICE void visit_each(std::int64_t first, std::int64_t step) const {
    if (first >= groups()) return;
    if (own > 1 || (of.innermost() && step % of.channels == 0))
      visit_alike(first, groups(), step, of.template channel_of<own>(first * width));
    else
      for (std::int64_t group = first; group < groups(); group += step)
        visit_alike(group, group + 1, 1, of.template channel_of<own>(group * width));
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

template <class T, class Terms>
void enqueue_by_channel(const Call& call, const Channels& of, const Terms& terms) {
  if (of.count() * of.channels == 0) return;
  dispatch_groups<T>(of, [&](auto groups) {
    const ByChannelKernel<Terms, decltype(groups)> kernel{terms, of};
    enqueue(call, kernel.blocks(), kernel);
  });
}

}  // namespace plexaura::cuda
