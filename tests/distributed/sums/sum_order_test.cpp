#include "distributed/sums/sum_order.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <random>

namespace plexaura::testing::sum_order_test {
namespace {

constexpr DType dtype = DType::float32;

// Values of such different sizes that other orders of adding give other bits.
const std::vector<float> terms{-0.69F, 959772.56F, -372.34F, 7933192.83F, -2464975.65F,
                               0.29F,  240252.27F, -137.62F, 8728718.06F};

std::byte* bytes_at(float& value) { return reinterpret_cast<std::byte*>(&value); }

std::vector<Summand> shards_of(std::vector<float>& values) {
  std::vector<std::byte*> arrays;
  for (float& value : values) arrays.push_back(bytes_at(value));
  return as_shards(arrays);
}

float add_one(std::span<const Summand> summands) {
  float sum = 0;
  std::byte* const to = bytes_at(sum);
  add_in_order(dtype, summands, 1, std::span(&to, 1));
  return sum;
}

float sum_of_first(std::size_t count) {
  std::vector<float> values(terms.begin(), terms.begin() + static_cast<std::ptrdiff_t>(count));
  return add_one(shards_of(values));
}

}  // namespace

TEST_CASE("sum order: halves of powers of two, written out") {
  const auto& t = terms;
  CHECK(sum_of_first(1) == t[0]);
  CHECK(sum_of_first(2) == t[0] + t[1]);
  CHECK(sum_of_first(3) == (t[0] + t[1]) + t[2]);
  CHECK(sum_of_first(4) == (t[0] + t[1]) + (t[2] + t[3]));
  CHECK(sum_of_first(5) == ((t[0] + t[1]) + (t[2] + t[3])) + t[4]);
  CHECK(sum_of_first(6) == ((t[0] + t[1]) + (t[2] + t[3])) + (t[4] + t[5]));
  CHECK(sum_of_first(7) == ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + t[6]));
  const float eight = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
  CHECK(sum_of_first(8) == eight);
  CHECK(sum_of_first(9) == eight + t[8]);
  for (const std::size_t count : {4, 5, 6, 7, 8, 9})
    CHECK(sum_of_first(count) !=
          std::accumulate(t.begin(), t.begin() + static_cast<std::ptrdiff_t>(count), 0.0F));
}

TEST_CASE("sum order: what ranks that are together may add before others") {
  using Blocks = std::vector<ShardRange>;
  const auto among = [](std::vector<int> shards, int count) { return blocks_among(shards, count); };
  CHECK(among({0, 1}, 4) == Blocks{{0, 2}});
  CHECK(among({1, 2}, 4) == Blocks{{1, 2}, {2, 3}});
  CHECK(among({0, 1, 2}, 6) == Blocks{{0, 2}, {2, 3}});
  CHECK(among({3, 4, 5}, 6) == Blocks{{3, 4}, {4, 6}});
  CHECK(among({4, 5, 6}, 7) == Blocks{{4, 7}});
  CHECK(among({0, 2, 4}, 5) == Blocks{{0, 1}, {2, 3}, {4, 5}});
  CHECK(among({0, 1, 2, 3, 4}, 5) == Blocks{{0, 5}});
}

TEST_CASE("sum order: fewer ranks bring blocks of the shards") {
  using Blocks = std::vector<ShardRange>;
  CHECK(divide_shards(4, 4) == Blocks{{0, 1}, {1, 2}, {2, 3}, {3, 4}});
  CHECK(divide_shards(4, 3) == Blocks{{0, 1}, {1, 2}, {2, 4}});
  CHECK(divide_shards(4, 2) == Blocks{{0, 2}, {2, 4}});
  CHECK(divide_shards(4, 1) == Blocks{{0, 4}});
  CHECK(divide_shards(7, 5) == Blocks{{0, 1}, {1, 2}, {2, 4}, {4, 6}, {6, 7}});
}

TEST_CASE("sum order: blocks that were added before give the same bits") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const int count = 1 + static_cast<int>(random() % 17);
    std::vector<float> values;
    std::vector<std::vector<int>> groups(3);
    for (int shard = 0; shard < count; ++shard) {
      values.push_back(
          std::ldexp(static_cast<float>(random() % 65536) - 32768.0F, static_cast<int>(random() % 30)));
      groups[random() % 3].push_back(shard);
    }
    const std::vector<Summand> shards = shards_of(values);
    std::vector<float> sums;
    std::vector<Summand> blocks;
    sums.reserve(values.size());
    for (const std::vector<int>& group : groups)
      for (const ShardRange block : blocks_among(group, count)) {
        const auto length = static_cast<std::size_t>(block.last - block.first);
        sums.push_back(add_one(std::span(shards).subspan(static_cast<std::size_t>(block.first), length)));
        blocks.push_back({block, bytes_at(sums.back())});
      }
    std::ranges::sort(blocks, {}, [](const Summand& block) { return block.shards.first; });
    CHECK(add_one(blocks) == add_one(shards));
  }
}

TEST_CASE("sum order: sums of many elements are written to all arrays") {
  std::vector<float> a(5000), b(5000, 1), c(5000, 2);
  std::iota(a.begin(), a.end(), 0.0F);
  std::vector<std::byte*> arrays;
  for (auto* values : {&a, &b, &c}) arrays.push_back(reinterpret_cast<std::byte*>(values->data()));
  add_in_order(dtype, as_shards(arrays), 5000, arrays);
  CHECK(a[0] == 3.0F);
  CHECK(a[4999] == 5002.0F);
  CHECK(a == b);
  CHECK(a == c);
}

}  // namespace plexaura::testing::sum_order_test
