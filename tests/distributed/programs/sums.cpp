#include "tests/distributed/programs/sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/error.h"

namespace plexaura {
namespace {

// Returns values of very different sizes, so that every other order of adding gives other bits.
template <class T>
T value(int rank, std::int64_t i) {
  const std::uint64_t mixed =
      (static_cast<std::uint64_t>(i) * 31 + static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15U;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(mixed);  // sums of integers wrap
  } else {
    return static_cast<T>(
        std::ldexp(static_cast<double>(mixed >> 12) - 0x1p51, -static_cast<int>(mixed % 40)));
  }
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
std::vector<T> values(int rank, std::int64_t count) {
  std::vector<T> made(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = value<T>(rank, i);
  return made;
}

// Returns the sum over the ranks [first, last): that of the first ones, as many as the largest power of two
// below their number, plus that of the others.
template <class T>
std::vector<T> expected(int first, int last, std::int64_t count) {
  if (last - first == 1) return values<T>(first, count);
  int half = 1;
  while (2 * half < last - first) half *= 2;
  std::vector<T> sum = expected<T>(first, first + half, count);
  const std::vector<T> more = expected<T>(first + half, last, count);
  std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), plus<T>);
  return sum;
}

// Returns true if the values differ by no more than another order of adding may change, for summands below
// 2^51.
template <class T>
bool is_near(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a == b;
  else
    return std::abs(a - b) <= 16 * std::numeric_limits<T>::epsilon() * T{0x1p51};
}

template <class T>
void compare(const Communicator& ranks, const void* got, const std::vector<T>& wanted,
             const std::string& what) {
  const T* const values = static_cast<const T*>(got);
  const bool equal = ranks.keeps_order()
                         ? wanted.empty() || std::memcmp(got, wanted.data(), wanted.size() * sizeof(T)) == 0
                         : std::equal(wanted.begin(), wanted.end(), values, is_near<T>);
  if (equal) return;
  throw InternalError(fmt::format("test failed: {} of {} {}", what, wanted.size(), name_of(dtype_of<T>)));
}

template <class T>
void check_window(Communicator& ranks, std::int64_t count, std::int64_t cut, const std::vector<T>& wanted) {
  // Elements to skip, so that the first one is not aligned to a cache line.
  constexpr std::int64_t elements_before = 3;
  const auto size = static_cast<std::int64_t>(sizeof(T));
  SharedWindow window =
      ranks.allocate_shared(static_cast<std::size_t>((count + elements_before) * size), "a window");
  const bool aligned = reinterpret_cast<std::uintptr_t>(window.data()) % (std::size_t{2} << 20) == 0;
  if (!aligned) throw InternalError("test failed: the window is not aligned");
  const std::vector<T> mine = values<T>(ranks.rank(), count);
  if (count > 0) std::memcpy(window.data() + elements_before * size, mine.data(), mine.size() * sizeof(T));
  for (std::int64_t first = 0; first < count || first == 0; first += cut) {
    const auto offset = static_cast<std::size_t>((elements_before + first) * size);
    ranks.sum_window(window, offset, dtype_of<T>, std::min(cut, count - first), "a window");
  }
  compare(ranks, window.data() + elements_before * size, wanted,
          fmt::format("the sum in windows, cut at {},", cut));
}

// Each rank overwrites the parts of others with garbage.
template <class T>
void check_halves(Communicator& ranks, std::int64_t count, const std::vector<T>& wanted) {
  std::vector<T> mine = values<T>(ranks.rank(), count);
  auto* const data = reinterpret_cast<std::byte*>(mine.data());
  ranks.reduce_scatter(dtype_of<T>, data, count, "values");
  const Part part = part_of(count, dtype_of<T>, ranks.rank(), ranks.size());
  for (std::int64_t i = 0; i < count; ++i)
    if (i < part.first || i >= part.first + part.count) mine[static_cast<std::size_t>(i)] = T{};
  ranks.all_gather(dtype_of<T>, data, count, "values");
  compare(ranks, mine.data(), wanted, "the sum in halves");
}

template <class T>
void check_sums(Communicator& ranks) {
  for (const std::int64_t count : {0, 1, 1000, 786'433}) {
    const std::vector<T> wanted = expected<T>(0, ranks.size(), count);
    std::vector<T> mine = values<T>(ranks.rank(), count);
    ranks.sum(dtype_of<T>, reinterpret_cast<std::byte*>(mine.data()), count, "values");
    compare(ranks, mine.data(), wanted, "the sum");
    check_halves<T>(ranks, count, wanted);
    for (const std::int64_t cut : {count, count / 3 + 1})
      check_window<T>(ranks, count, std::max<std::int64_t>(cut, 1), wanted);
  }
}

}  // namespace

void check_all_sums(Communicator& ranks) {
  check_sums<float>(ranks);
  check_sums<double>(ranks);
  check_sums<std::int64_t>(ranks);
}

}  // namespace plexaura
