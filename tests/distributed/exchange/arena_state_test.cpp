#include "distributed/exchange/arena_state.h"

#include <doctest/doctest.h>
#include <numeric>

namespace plexaura::testing::arena_state_test {

namespace {

Placement placement_of(const Layout& layout) {
  Placement placement{ArenaTypes::all(DType::float32), {}};
  placement.append("weight", {DType::float32, {2, 3}}, ParameterRole::trainable, layout);
  placement.append("bias", {DType::float32, {2}}, ParameterRole::trainable, Layout::row_major(1));
  placement.append("running", {DType::float32, {2}}, ParameterRole::buffer, Layout::row_major(1));
  return placement;
}

Tensor arena_of(const Placement& placement) {
  return Tensor({DType::float32, Shape{placement.count(ParameterRole::trainable)}});
}

}  // namespace

TEST_CASE("arena state: what memory holds comes back in another layout, by name and type") {
  const Placement rows = placement_of(Layout::row_major(2));
  const Placement columns = placement_of(Layout({1, 0}));
  Tensor arena = arena_of(rows);
  std::iota(arena.as<float>().begin(), arena.as<float>().end(), 1.0F);
  std::vector<StrategyState> state;
  keep_arena(rows, arena, "owed.", true, state);
  REQUIRE(state.size() == 2);
  CHECK(state[0].name == "owed.weight");
  CHECK(state[0].of_rank);
  CHECK(state[0].value.to_doubles() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(state[1].name == "owed.bias");

  Tensor other = arena_of(columns);
  for (const StrategyState& part : state) take_arena(columns, other, "owed.", part);
  const std::vector<double> taken = other.to_doubles();
  CHECK(std::vector<double>(taken.begin(), taken.begin() + 6) == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(taken[16] == 17);

  Tensor untouched = arena_of(rows);
  take_arena(rows, untouched, "velocity.", state[0]);
  take_arena(rows, untouched, "owed.", {"owed.running", state[1].value, true});
  take_arena(rows, untouched, "owed.", {"owed.weight", state[1].value, true});
  CHECK(untouched.to_doubles() == arena_of(rows).to_doubles());
}

}  // namespace plexaura::testing::arena_state_test
