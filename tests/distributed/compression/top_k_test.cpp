#include "distributed/compression/top_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "tests/distributed/compression/exchanges.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::top_k_test {

namespace {

CompressionOptions share(double ratio) { return {.name = "top-k", .ratio = ratio}; }

// Computes a step by the definition: sorts all elements, and takes the first `count`.
std::vector<Exchanged> expected_of(const std::vector<Floats>& owed, std::size_t count) {
  std::vector<Exchanged> expected;
  Floats sums(owed[0].size());
  for (const Floats& mine : owed) {
    std::vector<std::size_t> places(mine.size());
    std::iota(places.begin(), places.end(), 0);
    std::ranges::stable_sort(
        places, [&](std::size_t a, std::size_t b) { return std::abs(mine[a]) > std::abs(mine[b]); });
    Floats left = mine;
    for (std::size_t i = 0; i < count; ++i) {
      sums[places[i]] += mine[places[i]];
      left[places[i]] = 0;
    }
    expected.push_back({{}, left});
  }
  for (Exchanged& rank : expected) rank.sums = sums;
  return expected;
}

}  // namespace

TEST_CASE("top-k: sums and what is owed are those of the definition, on all ranks") {
  struct Case {
    std::int64_t elements;
    double ratio;
    std::size_t chosen;
  };
  for (const Case& each : {Case{1000, 0.01, 10}, {1000, 0.0101, 11}, {90, 0.01, 1}, {20, 1, 20}})
    for (const int ranks : {2, 3}) {
      CAPTURE(each.elements);
      CAPTURE(each.ratio);
      const auto seen = exchange(share(each.ratio), ranks, 1,
                                 [&](int rank, int) { return summands<float>(rank, each.elements); });
      std::vector<Floats> owed;
      for (int rank = 0; rank < ranks; ++rank) owed.push_back(summands<float>(rank, each.elements));
      const std::vector<Exchanged> expected = expected_of(owed, each.chosen);
      for (std::size_t rank = 0; rank < owed.size(); ++rank) {
        CHECK(seen[0][rank].sums == expected[rank].sums);
        CHECK(seen[0][rank].owed == expected[rank].owed);
      }
    }
}

TEST_CASE("top-k: of elements of the same magnitude the first are taken, and what was left comes later") {
  const auto seen = exchange(share(0.5), 2, 2, [](int rank, int step) {
    if (rank == 1) return Floats{0, 0, 0, 0};
    return step == 0 ? Floats{2, 2, -3, -2} : Floats{0, 0, 0, 0.5F};
  });
  CHECK(seen[0][1].sums == Floats{2, 0, -3, 0});
  CHECK(seen[0][0].owed == Floats{0, 2, 0, -2});
  CHECK(seen[1][1].sums == Floats{0, 2, 0, -1.5F});
}

TEST_CASE("top-k: what is not finite crosses first") {
  const float inf = std::numeric_limits<float>::infinity();
  const auto seen = exchange(share(0.5), 2, 1, [&](int, int) {
    return Floats{1e30F, std::nanf(""), 1, -inf};
  });
  CHECK(std::isnan(seen[0][1].sums[1]));
  CHECK(seen[0][1].sums[3] == -inf);
  CHECK(seen[0][1].owed == Floats{1e30F, 0, 1, 0});
}

TEST_CASE("top-k: eight bytes cross for each element that is chosen") {
  for (const int ranks : {2, 3})
    CHECK(bytes_sent(share(0.02), ranks, {100'000}) == doctest::Approx(8 * 2000).epsilon(0.02));
}

TEST_CASE("top-k: a bucket whose places cannot be told apart is refused") {
  const std::unique_ptr<Communicator> alone = make_communicator();
  TopK compression(*alone, 0.01);
  const std::array most{Bucket{0, std::int64_t{1} << 32, DType::float32}};
  compression.begin({}, most);
  const std::array more{Bucket{0, (std::int64_t{1} << 32) + 1, DType::float32}};
  CHECK_THROWS_WITH_AS(compression.begin({}, more),
                       doctest::Contains("make distributed.bucket_bytes smaller"), UserError);
}

}  // namespace plexaura::testing::top_k_test
