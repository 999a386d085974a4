#include "distributed/compression/power_sgd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/base/error.h"
#include "tests/distributed/compression/exchanges.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::power_sgd_test {

namespace {

using Doubles = std::vector<double>;

constexpr std::size_t rows = 12;
constexpr std::size_t columns = 20;
const std::vector<std::vector<std::int64_t>> one_matrix{{rows, columns}};

CompressionOptions of_rank(std::int64_t rank) { return {.name = "powersgd", .rank = rank}; }

Floats noise(int rank, int step, std::size_t count = rows * columns) {
  Floats made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(std::sin(static_cast<float>((i + 1) * (static_cast<std::size_t>(rank) + 2)) +
                            static_cast<float>(step)));
  return made;
}

// `start` has the initial right vectors.
StrategyState right_vectors(const Floats& start) {
  return {"right.weight0",
          Tensor::of<float>(Shape{static_cast<std::int64_t>(start.size() / columns), columns}, start), true};
}

// Computes one step by the definition for one matrix and two vectors, in float64, as columns. Replaces
// `right` by the vectors of the next step.
std::vector<Exchanged> expected_of(const std::vector<Floats>& owed, Doubles& right) {
  Doubles left(2 * rows);
  for (const Floats& mine : owed)
    for (std::size_t c = 0; c < 2; ++c) {
      double square = 0;
      for (std::size_t j = 0; j < columns; ++j) square += right[c * columns + j] * right[c * columns + j];
      for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
          left[c * rows + i] += mine[i * columns + j] * right[c * columns + j] / std::sqrt(square);
    }
  double overlap = 0;
  double first = 0;
  for (std::size_t i = 0; i < rows; ++i) overlap += left[i] * left[rows + i];
  for (std::size_t i = 0; i < rows; ++i) first += left[i] * left[i];
  for (std::size_t i = 0; i < rows; ++i) left[rows + i] -= overlap / first * left[i];
  double second = 0;
  for (std::size_t i = 0; i < rows; ++i) second += left[rows + i] * left[rows + i];
  for (std::size_t i = 0; i < 2 * rows; ++i) left[i] /= std::sqrt(i < rows ? first : second);
  std::ranges::fill(right, 0);
  std::vector<Exchanged> expected;
  Doubles sums(rows * columns);
  for (const Floats& mine : owed) {
    Floats left_over(rows * columns);
    Doubles own(2 * columns);
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t i = 0; i < rows; ++i)
          own[c * columns + j] += left[c * rows + i] * mine[i * columns + j];
    for (std::size_t k = 0; k < own.size(); ++k) right[k] += own[k];
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        const double crossed = left[i] * own[j] + left[rows + i] * own[columns + j];
        left_over[i * columns + j] = static_cast<float>(mine[i * columns + j] - crossed);
        sums[i * columns + j] += crossed;
      }
    expected.push_back({{}, left_over});
  }
  for (Exchanged& rank : expected) rank.sums.assign(sums.begin(), sums.end());
  return expected;
}

double farthest(const Floats& a, const Floats& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

}  // namespace

TEST_CASE(
    "powersgd: sums and what is owed are those of the definition, and the next step begins with the last "
    "one") {
  for (const int ranks : {2, 3}) {
    const Floats start = noise(7, 0, 2 * columns);
    const auto seen = exchange(of_rank(2), ranks, 3, [](int rank, int step) { return noise(rank, step); },
                               one_matrix, {right_vectors(start)});
    Doubles right(start.begin(), start.end());
    std::vector<Floats> owed(static_cast<std::size_t>(ranks), Floats(rows * columns));
    for (int step = 0; step < 3; ++step) {
      for (int rank = 0; rank < ranks; ++rank) {
        const Floats more = noise(rank, step);
        Floats& mine = owed[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += more[i];
      }
      const std::vector<Exchanged> expected = expected_of(owed, right);
      for (std::size_t rank = 0; rank < owed.size(); ++rank) {
        const Exchanged& mine = seen[static_cast<std::size_t>(step)][rank];
        CHECK(farthest(mine.sums, expected[rank].sums) < 1e-4);
        CHECK(farthest(mine.owed, expected[rank].owed) < 1e-4);
        owed[rank] = expected[rank].owed;
      }
    }
  }
}

// The sum of two matrices of rank 1, one of each rank.
TEST_CASE("powersgd: a sum of low rank crosses whole, whatever the right vectors begin with") {
  const auto product = [](int rank, int) {
    Floats made;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        made.push_back(noise(rank, 1, rows)[i] * noise(rank, 2, columns)[j]);
    return made;
  };
  const auto seen = exchange(of_rank(2), 2, 1, product, one_matrix);
  Floats sum = product(0, 0);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += product(1, 0)[i];
  CHECK(farthest(seen[0][0].sums, sum) < 1e-5);
  CHECK(farthest(exchange(of_rank(1), 2, 1, product, one_matrix)[0][0].sums, sum) > 0.1);
}

TEST_CASE("powersgd: a matrix that was 0 in a step crosses in the next one") {
  const auto seen = exchange(
      of_rank(1), 2, 2, [](int, int step) { return Floats(rows * columns, step == 0 ? 0.0F : 1.0F); },
      one_matrix);
  CHECK(seen[0][0].sums == Floats(rows * columns));
  CHECK(farthest(seen[1][0].sums, Floats(rows * columns, 2)) < 1e-5);
}

TEST_CASE("powersgd: vectors, and matrices whose factors would not be smaller, cross as they are") {
  const std::vector<std::vector<std::int64_t>> shapes{{16}, {4, 4}, {4, 2, 2}, {16, 16}};
  const auto seen = exchange(
      of_rank(2), 3, 1, [](int rank, int) { return summands<float>(rank, 48 + 256); }, shapes);
  const auto first = [](Floats all) {
    all.resize(48);
    return all;
  };
  CHECK(first(seen[0][2].sums) == sums<float>(3, 48));
  CHECK(first(seen[0][2].owed) == Floats(48));
}

TEST_CASE("powersgd: a model of which nothing would be smaller is refused") {
  const std::unique_ptr<Communicator> alone = make_communicator();
  PowerSgd compression(*alone, 4);
  Placement placement{ArenaTypes::all(DType::float32), {}};
  placement.append("weight", {DType::float32, {8, 8}}, ParameterRole::trainable, Layout::row_major(2));
  const std::array buckets{Bucket{0, 64, DType::float32}};
  CHECK_THROWS_WITH_AS(compression.begin(placement, buckets),
                       doctest::Contains("finds no parameter of which 8 vectors would be smaller"),
                       UserError);
}

TEST_CASE("powersgd: what is not finite stays so") {
  const auto seen = exchange(
      of_rank(1), 2, 1,
      [](int rank, int) {
        Floats made(rows * columns, 1);
        if (rank == 1) made[7] = std::numeric_limits<float>::quiet_NaN();
        return made;
      },
      one_matrix);
  CHECK(std::isnan(seen[0][0].sums[7]));
}

// 1,000 x 100 elements are sent as 2 x 1,100, twice: to the rank that adds, and as sums.
TEST_CASE("powersgd: only factors cross") {
  CHECK(bytes_sent(of_rank(2), 2, {1000, 100}) == doctest::Approx(4 * 2 * 1100).epsilon(0.05));
}

}  // namespace plexaura::testing::power_sgd_test
