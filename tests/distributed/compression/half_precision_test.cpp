#include "distributed/compression/half_precision.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "tests/distributed/compression/exchanges.h"
#include "tests/distributed/sums/sums_support.h"

namespace plexaura::testing::half_precision_test {

namespace {

struct Format {
  std::string name;
  int digits;    // digits of the significand, with the leading one
  int smallest;  // exponent of the smallest number, if the largest number of a part is below 2^15
};

const std::vector<Format> formats{{"fp16", 11, -24}, {"bf16", 8, -133}};

int exponent_of(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return exponent;
}

// Rounds to the nearest number of the format, ties to even. The format is scaled for a part whose largest
// number is `largest`.
float rounded(const Format& format, float value, float largest) {
  if (value == 0) return 0;
  const int least = format.smallest - (15 - exponent_of(largest));
  const int unit = std::max(exponent_of(value) - format.digits, least);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(double{value}, -unit)), unit));
}

float largest_of(const Floats& values, std::size_t first, std::size_t last) {
  float largest = 0;
  for (std::size_t i = first; i < last; ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

// Computes one step by the definition: each rank rounds each part, the parts are added in the order of
// sum_order.h, and the owner rounds the sum.
std::vector<Exchanged> expected_of(const Format& format, const std::vector<Floats>& owed) {
  const std::size_t count = owed[0].size();
  const std::size_t length = (count + owed.size() - 1) / owed.size();
  std::vector<Exchanged> expected;
  for (const Floats& mine : owed) expected.push_back({Floats(count), mine});
  for (std::size_t owner = 0; owner < owed.size(); ++owner) {
    const std::size_t first = std::min(owner * length, count);
    const std::size_t last = std::min(first + length, count);
    Floats sums(count);
    for (std::size_t i = first; i < last; ++i) {
      Floats brought;
      for (std::size_t rank = 0; rank < owed.size(); ++rank) {
        brought.push_back(rounded(format, owed[rank][i], largest_of(owed[rank], first, last)));
        expected[rank].owed[i] -= brought.back();
      }
      sums[i] = brought[0] + brought[1];
      if (brought.size() == 3) sums[i] += brought[2];
    }
    for (std::size_t i = first; i < last; ++i) {
      const float sum = rounded(format, sums[i], largest_of(sums, first, last));
      expected[owner].owed[i] += sums[i] - sum;
      for (Exchanged& rank : expected) rank.sums[i] = sum;
    }
  }
  return expected;
}

CompressionOptions named(const std::string& name) { return {.name = name}; }

}  // namespace

TEST_CASE("half precision: sums and what is owed are those of the definition, on all ranks") {
  for (const Format& format : formats)
    for (const int ranks : {2, 3})
      for (const std::int64_t count : {1, 2, 1000}) {
        CAPTURE(format.name);
        CAPTURE(ranks);
        CAPTURE(count);
        const auto seen = exchange(named(format.name), ranks, 1,
                                   [&](int rank, int) { return summands<float>(rank, count); });
        std::vector<Floats> owed;
        for (int rank = 0; rank < ranks; ++rank) owed.push_back(summands<float>(rank, count));
        const std::vector<Exchanged> expected = expected_of(format, owed);
        for (std::size_t rank = 0; rank < owed.size(); ++rank) {
          CHECK(seen[0][rank].sums == expected[rank].sums);
          CHECK(seen[0][rank].owed == expected[rank].owed);
        }
      }
}

TEST_CASE("half precision: no finite number overflows, and what is not finite stays so") {
  constexpr float huge = std::numeric_limits<float>::max() / 4;
  constexpr float inf = std::numeric_limits<float>::infinity();
  for (const Format& format : formats)
    for (const float value : {65520.0F, 1e30F, huge, -huge, 1e-30F, std::numeric_limits<float>::min()}) {
      CAPTURE(format.name);
      CAPTURE(value);
      const auto seen = exchange(named(format.name), 2, 1, [&](int, int) { return Floats{value, 0}; });
      CHECK(seen[0][0].sums[0] == doctest::Approx(2 * double{value}).epsilon(0.01));
    }
  for (const Format& format : formats) {
    const auto seen = exchange(named(format.name), 2, 1, [&](int rank, int) {
      return rank == 0 ? Floats{inf, std::nanf(""), 3, 4} : Floats{1, 2, 3, 4};
    });
    CHECK(seen[0][1].sums[0] == inf);
    CHECK(std::isnan(seen[0][1].sums[1]));
    CHECK(seen[0][1].sums[2] == 6);
  }
}

// 0.001 is lost in each sum with 1, whose spacing of numbers is 2^-10 or 2^-7.
TEST_CASE("half precision: what rounding takes away comes with the next steps") {
  constexpr int steps = 1000;
  for (const Format& format : formats) {
    const auto seen = exchange(named(format.name), 2, steps, [](int rank, int) {
      return rank == 0 ? Floats{1, 0.0001F} : Floats{0.0001F, 1};
    });
    for (const std::size_t i : {0, 1}) {
      double applied = 0;
      for (const auto& step : seen) applied += step[0].sums[i];
      CHECK(seen[0][0].sums[i] == 1);
      CHECK(applied == doctest::Approx(steps * 1.0001).epsilon(1e-5));
    }
  }
}

// Each rank sends its parts for the others once, and the sums of its own part: with three ranks, 2/3 of the
// elements each.
TEST_CASE("half precision: half of the bytes cross") {
  for (const Format& format : formats) {
    CHECK(bytes_sent(named(format.name), 2, {100'000}) == doctest::Approx(2 * 100'000).epsilon(0.01));
    CHECK(bytes_sent(named(format.name), 3, {150'000}) == doctest::Approx(2 * 100'000).epsilon(0.01));
  }
}

}  // namespace plexaura::testing::half_precision_test
