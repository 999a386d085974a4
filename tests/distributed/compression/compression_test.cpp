#include "distributed/compression/compression.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "tests/distributed/compression/exchanges.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::compression_test {

namespace {

std::vector<CompressionOptions> all_compressions() {
  std::vector<CompressionOptions> all;
  for (const std::string& name : compression_names())
    if (name != "none") all.push_back({.name = name, .ratio = 0.05});
  return all;
}

// Shapes of a vector, a matrix and the weights of a convolution.
const std::vector<std::vector<std::int64_t>> shapes{{16}, {16, 32}, {8, 4, 2, 2}};
constexpr std::size_t elements = 16 + 16 * 32 + 8 * 4 * 2 * 2;

Floats gradient(int rank, int step) {
  Floats made;
  for (std::size_t i = 0; i < elements; ++i)
    made.push_back(summand<float>(rank, static_cast<std::int64_t>(i) + std::int64_t{1000} * step));
  return made;
}

}  // namespace

TEST_CASE("compression: 'none' is none, and a wrong name is told with the nearest") {
  const std::unique_ptr<Communicator> alone = make_communicator();
  CHECK(make_compression({}, *alone) == nullptr);
  CHECK_THROWS_WITH_AS(make_compression({.name = "bf61"}, *alone),
                       doctest::Contains("there is no compression 'bf61'; known are none, "), UserError);
}

TEST_CASE("compression: all ranks have the same sums, and two runs the same bits") {
  for (const CompressionOptions& options : all_compressions())
    for (const int ranks : {2, 3}) {
      CAPTURE(options.name);
      const auto seen = exchange(options, ranks, 4, gradient, shapes);
      const auto again = exchange(options, ranks, 4, gradient, shapes);
      for (std::size_t step = 0; step < seen.size(); ++step)
        for (std::size_t rank = 0; rank < seen[step].size(); ++rank) {
          CHECK(seen[step][rank].sums == seen[step][0].sums);
          CHECK(again[step][rank].sums == seen[step][rank].sums);
          CHECK(again[step][rank].owed == seen[step][rank].owed);
        }
    }
}

TEST_CASE("compression: the bits do not depend on shared memory, nor on hosts that have one rank each") {
  for (const CompressionOptions& options : all_compressions()) {
    CAPTURE(options.name);
    const auto apart = exchange(options, 4, 2, gradient, shapes);
    for (const Places& places : {Places({"a", "a", "a", "a"}), Places({"a", "b", "c", "d"})}) {
      const auto seen = exchange(options, places, 2, gradient, shapes);
      for (std::size_t rank = 0; rank < 4; ++rank) {
        CHECK(seen[1][rank].sums == apart[1][rank].sums);
        CHECK(seen[1][rank].owed == apart[1][rank].owed);
      }
    }
  }
}

// Over all ranks and steps, the gradients must equal what was sent plus what is still owed.
TEST_CASE("compression: with a gradient that stays, the sums of all steps come to that of the gradients") {
  constexpr int steps = 200;
  const auto constant = [](int rank, int) {
    Floats made;
    for (std::size_t i = 0; i < elements; ++i)
      made.push_back(static_cast<float>((static_cast<int>(i) * 7 + rank * 13) % 29 - 14) / 29);
    return made;
  };
  for (const CompressionOptions& options : all_compressions()) {
    CAPTURE(options.name);
    const auto seen = exchange(options, 2, steps, constant, shapes);
    const Floats first = constant(0, 0);
    const Floats second = constant(1, 0);
    double farthest = 0;
    double mismatch = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      double applied = 0;
      for (const auto& step : seen) applied += step[0].sums[i];
      const double brought = steps * (double{first[i]} + double{second[i]});
      const double owed = double{seen.back()[0].owed[i]} + double{seen.back()[1].owed[i]};
      farthest = std::max(farthest, std::abs(brought - applied) / steps);
      mismatch = std::max(mismatch, std::abs(brought - applied - owed) / steps);
    }
    CHECK(mismatch < 1e-5);  // allows for rounding in float32
    CHECK(farthest < 0.2);
  }
}

}  // namespace plexaura::testing::compression_test
