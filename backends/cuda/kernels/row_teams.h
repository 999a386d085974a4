#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/several.h"

// Kernels over rows of consecutive elements, each of which is read by a team of threads.

namespace plexaura::cuda {

// Several sums of a row. Teams join them in double.
template <int sums>
struct RowSums {
  double of[sums];

  PLEXAURA_DEVICE static RowSums of_none() { return {}; }
  PLEXAURA_DEVICE void add(const RowSums& other) {
    for (int k = 0; k < sums; ++k) of[k] += other.of[k];
  }
};

// Divides the threads of a block into teams, whose number of threads is a power of two. A thread of a team reads
// groups of `width` elements.
struct RowTeams {
  std::int64_t rows;
  std::int64_t extent;  // number of elements of a row, a multiple of the width
  int team;             // number of threads of a team

  RowTeams(std::int64_t rows, std::int64_t extent, int width)
      : rows(rows), extent(extent), team(team_of(extent / width)) {}

  PLEXAURA_HD int rows_at_once() const { return threads / team; }
  std::int64_t blocks() const { return blocks_of_sums((rows + rows_at_once() - 1) / rows_at_once()); }

  PLEXAURA_DEVICE int leader_of(int thread) const { return thread & -team; }
  PLEXAURA_DEVICE bool leads(int thread) const { return leader_of(thread) == thread; }

  // Calls body(row_of) for the rows of a block. A phase in it computes the row row_of(thread), which does not
  // exist unless it is less than `rows`.
  template <class Body>
  PLEXAURA_DEVICE void each_round(Block& block, const Body& body) const {
    const int at_once = rows_at_once();
    for (std::int64_t first = block.index() * at_once; first < rows; first += block.blocks() * at_once)
      body([this, first](int thread) { return first + thread / team; });
  }

  // Calls use(place, read(place)) for the groups of a row that a thread reads.
  template <int width, int at_once, class Read, class Use>
  PLEXAURA_DEVICE void each_group(std::int64_t row, int thread, const Read& read, const Use& use) const {
    visit_groups<width, at_once>(row, thread & (team - 1), extent / width, read, use);
  }

  // Returns sums over the groups of a row that a thread reads: add(place, read(place), sums) adds the numbers of a group
  // to an array of R, in which no more than 64 elements are added up.
  template <int sums, class R, int width, int at_once, class Read, class Add>
  PLEXAURA_DEVICE RowSums<sums> sum_of(std::int64_t row, int thread, const Read& read, const Add& add) const {
    constexpr int most_groups = 64 / width;
    const std::int64_t step = static_cast<std::int64_t>(most_groups) * team;
    const std::int64_t groups = extent / width;
    RowSums<sums> total = RowSums<sums>::of_none();
    for (std::int64_t first = thread & (team - 1); first < groups; first += step) {
      R few[sums] = {};
      visit_groups<width, at_once>(row, first, first + step < groups ? first + step : groups, read,
                                   [&](std::int64_t place, const auto& values) { add(place, values, few); });
      for (int k = 0; k < sums; ++k) total.of[k] += static_cast<double>(few[k]);
    }
    return total;
  }

  // Leaves the sum of the numbers that each thread has stored with the first thread of its team.
  template <class Sum, class Sums>
  PLEXAURA_DEVICE void join(Block& block, Sums& sums) const {
    for (int half = team / 2; half > 0; half /= 2)
      block.each_thread([&](int thread) {
        if ((thread & (team - 1)) >= half) return;
        Sum sum = sums[thread];
        sum.add(static_cast<Sum>(sums[thread + half]));
        sums[thread] = sum;
      });
  }

 private:
  template <int width, int at_once, class Read, class Use>
  PLEXAURA_DEVICE void visit_groups(std::int64_t row, std::int64_t begin, std::int64_t end, const Read& read,
                                    const Use& use) const {
    if (row >= rows) return;
    visit<at_once>(
        begin, end, team, [&](std::int64_t group) { return row * extent + group * width; }, read, use);
  }

  // Returns the number of threads for a row of so many groups. Each reads a few of them, so that many bytes are on
  // their way at once.
  static int team_of(std::int64_t groups) {
    constexpr std::int64_t of_a_thread = 4;
    const auto wanted = static_cast<std::uint64_t>((groups + of_a_thread - 1) / of_a_thread);
    return static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(wanted), threads));
  }
};

}  // namespace plexaura::cuda
