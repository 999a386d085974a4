#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/kernels/block.h"
#include "backends/cuda/kernels/call.h"

// Kernels in which a thread computes several consecutive elements at once, so that it reads and writes up to
// 16 bytes by one instruction.

namespace plexaura::cuda {

constexpr int widest_access = 16;  // bytes

template <int count>
using Width = std::integral_constant<int, count>;

// The number of elements that a thread computes at once: the smallest type fills an access, up to 8 elements.
template <class... T>
inline constexpr int elements_at_once = std::min<int>(widest_access / std::min({sizeof(T)...}), 8);

// Calls f(first, Width<n>()) for groups of n elements from `first` on: n is `width` as far as possible if the
// operands of the launch are wide, and 1 for all others.
template <int width, class F>
PLEXAURA_DEVICE inline void each_group(Block& block, std::int64_t count, bool is_wide, const F& f) {
  std::int64_t grouped = 0;
  if constexpr (width > 1) {
    const std::int64_t groups = is_wide ? count / width : 0;
    block.each_item(groups, [&](std::int64_t group) { f(group * width, Width<width>()); });
    grouped = groups * width;
  }
  block.each_item(count - grouped, [&](std::int64_t i) { f(grouped + i, Width<1>()); });
}

// Returns the number of blocks for each_group().
inline std::int64_t blocks_for_groups(std::int64_t count, int width, bool is_wide) {
  return blocks_for(is_wide ? (count + width - 1) / width : count);
}

// True if each value begins where the widest access may begin. A null address fits.
template <class... Values>
bool are_aligned(const Values&... values) {
  return ((reinterpret_cast<std::uintptr_t>(values.address) % widest_access == 0) && ...);
}

// Calls use(place, read(place)) for the places place_of(i), with i from `begin` in steps. Several groups are
// read before the first one is used, so that a thread waits for memory only once.
template <int at_once, class PlaceOf, class Read, class Use>
PLEXAURA_DEVICE inline void visit(std::int64_t begin, std::int64_t end, std::int64_t step,
                                  const PlaceOf& place_of, const Read& read, const Use& use) {
  std::int64_t i = begin;
  if constexpr (at_once > 1) {
    for (; i + (at_once - 1) * step < end; i += at_once * step) {
      decltype(read(0)) values[at_once];
      for (int k = 0; k < at_once; ++k) values[k] = read(place_of(i + k * step));
      for (int k = 0; k < at_once; ++k) use(place_of(i + k * step), values[k]);
    }
  }
  for (; i < end; i += step) use(place_of(i), read(place_of(i)));
}

}  // namespace plexaura::cuda
