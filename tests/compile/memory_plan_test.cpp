#include "core/compile/memory_plan.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>

#include "testing/values.h"

namespace plexaura::testing::memory_plan_test {

namespace {

std::vector<Lifetime> random_lifetimes(std::uint64_t seed, std::int64_t pieces, std::int64_t instructions) {
  Random random(seed);
  std::vector<Lifetime> lifetimes;
  for (std::int64_t i = 0; i < pieces; ++i) {
    const auto first = static_cast<std::size_t>(random.below(instructions));
    const auto last =
        first + static_cast<std::size_t>(random.below(instructions - static_cast<std::int64_t>(first)));
    lifetimes.push_back({static_cast<std::size_t>(random.below(5000)), first, last});
  }
  return lifetimes;
}

bool overlap(std::size_t a, std::size_t a_bytes, std::size_t b, std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Returns the largest sum of sizes that are alive at one instruction, counted directly.
std::size_t most_alive(const std::vector<Lifetime>& lifetimes, std::size_t instructions) {
  std::size_t most = 0;
  for (std::size_t at = 0; at < instructions; ++at) {
    std::size_t alive = 0;
    for (const Lifetime& lifetime : lifetimes)
      if (lifetime.first <= at && at <= lifetime.last) alive += (lifetime.bytes + 63) / 64 * 64;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

TEST_CASE("pieces that live at the same time never overlap") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    const auto lifetimes = random_lifetimes(seed, 80, 40);
    const MemoryPlan plan = plan_memory(lifetimes);
    REQUIRE(plan.offsets.size() == lifetimes.size());
    bool apart = true;
    for (std::size_t a = 0; a < lifetimes.size(); ++a) {
      CHECK(plan.offsets[a] % 64 == 0);
      CHECK(plan.offsets[a] + lifetimes[a].bytes <= plan.peak);
      for (std::size_t b = 0; b < a; ++b)
        if (lifetimes[a].first <= lifetimes[b].last && lifetimes[b].first <= lifetimes[a].last)
          apart = apart && !overlap(plan.offsets[a], lifetimes[a].bytes, plan.offsets[b], lifetimes[b].bytes);
    }
    CHECK(apart);
    CHECK(plan.lower_bound == most_alive(lifetimes, 40));
    CHECK(plan.peak >= plan.lower_bound);
    CHECK(static_cast<double>(plan.peak) < 1.25 * static_cast<double>(plan.lower_bound));
  }
}

TEST_CASE(
    "many pieces are planned in the order of time, with no piece over another and little memory between "
    "them") {
  constexpr std::size_t instructions = 20'000;
  const auto spread = random_lifetimes(3, 9000, 60);
  // Short lifetimes, and nested ones like those of values that the backward pass reads.
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < 6000; ++i)
    lifetimes.push_back({spread[i].bytes, 3 * i, std::min(3 * i + spread[i].last, instructions)});
  for (std::size_t i = 6000; i < 9000; ++i)
    lifetimes.push_back({spread[i].bytes, i - 6000, instructions - (i - 6000)});
  const MemoryPlan plan = plan_memory(lifetimes);
  std::vector<std::size_t> by_offset(lifetimes.size());
  std::iota(by_offset.begin(), by_offset.end(), std::size_t{0});
  std::ranges::sort(by_offset, {}, [&](std::size_t piece) { return plan.offsets[piece]; });
  bool apart = true;
  for (std::size_t a = 0; a < by_offset.size(); ++a)
    for (std::size_t b = a + 1; b < by_offset.size(); ++b) {
      const Lifetime &lower = lifetimes[by_offset[a]], &upper = lifetimes[by_offset[b]];
      if (plan.offsets[by_offset[b]] >= plan.offsets[by_offset[a]] + lower.bytes) break;
      apart = apart && (upper.bytes == 0 || lower.last < upper.first || upper.last < lower.first);
    }
  CHECK(apart);
  CHECK(plan.lower_bound == most_alive(lifetimes, instructions + 1));
  CHECK(static_cast<double>(plan.peak) < 1.05 * static_cast<double>(plan.lower_bound));
}

TEST_CASE("equal lifetimes give equal plans") {
  const auto lifetimes = random_lifetimes(7, 50, 20);
  CHECK(plan_memory(lifetimes).offsets == plan_memory(lifetimes).offsets);
}

TEST_CASE("a chain reuses the memory of what died") {
  std::vector<Lifetime> chain;
  for (std::size_t i = 0; i < 10; ++i) chain.push_back({1000, i, i + 1});
  const MemoryPlan plan = plan_memory(chain);
  CHECK(plan.peak == 2048);
  CHECK(plan.lower_bound == 2048);
}

TEST_CASE("where it costs little memory, nothing soon takes the place of a piece") {
  const std::vector<Lifetime> lifetimes{
      {10000, 0, 0}, {1000, 1, 1}, {1000, 2, 2}, {1000, 3, 3}, {1000, 4, 4}};
  CHECK(plan_memory(lifetimes).offsets[1] == plan_memory(lifetimes).offsets[2]);
  const MemoryPlan plan = plan_memory_apart(lifetimes, 2);
  CHECK(plan.peak == plan_memory(lifetimes).peak);
  CHECK(plan.lower_bound == plan_memory(lifetimes).lower_bound);
  for (const auto& [a, b] :
       {std::pair(1, 2), std::pair(1, 3), std::pair(2, 3), std::pair(2, 4), std::pair(3, 4)})
    CHECK(plan.offsets[static_cast<std::size_t>(a)] != plan.offsets[static_cast<std::size_t>(b)]);
  const std::vector<Lifetime> full{{1000, 0, 0}, {1000, 1, 1}, {1000, 2, 2}};
  CHECK(plan_memory_apart(full, 2).peak == 1024);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const auto random = random_lifetimes(seed, 80, 40);
    CHECK(100 * plan_memory_apart(random, 4).peak <= 101 * plan_memory(random).peak);
  }
}

TEST_CASE("nothing needs no memory") {
  const MemoryPlan plan = plan_memory({});
  CHECK(plan.peak == 0);
  CHECK(plan.lower_bound == 0);
  const std::vector<Lifetime> empty{{0, 0, 3}, {0, 1, 2}};
  CHECK(plan_memory(empty).peak == 0);
}

}  // namespace plexaura::testing::memory_plan_test
