#include "distributed/averaging/change_sum.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <vector>

#include "core/base/error.h"

namespace plexaura::testing::change_sum_test {

namespace {

// Sums like two ranks that bring the same values, and sends half of what is owed.
class Half final : public Compression {
 public:
  void exchange(std::size_t, std::span<float> owed, std::span<float> sums, std::string_view) override {
    for (std::size_t i = 0; i < owed.size(); ++i) sums[i] = 2 * (owed[i] /= 2);
  }
  std::vector<Crossing> crossings(std::size_t, std::int64_t, int) const override { return {}; }
};

Placement placement(DType dtype) {
  Placement placement{ArenaTypes::all(dtype), {}};
  for (const char* name : {"first", "second"})
    placement.append(name, {dtype, {16}}, ParameterRole::trainable, Layout::row_major(1));
  return placement;
}

const std::vector<Bucket> halves{{0, 16}, {16, 16}};

// Sums a slice with the same change in each element, followed by a count that is not compressed. Returns the
// sums of an element and of the count.
std::pair<float, float> sum(ChangeSum& change_sum, std::size_t slice, float change) {
  std::vector<float> changes(17, change);
  change_sum.sum(slice, std::span(changes), "the test");
  CHECK(std::ranges::count(changes, changes[0]) >= 16);
  return {changes[0], changes[16]};
}

}  // namespace

TEST_CASE("change sum: what a sum leaves is owed when that is accepted, of its slice alone") {
  SingleProcess alone;
  ChangeSum change_sum(alone, std::make_unique<Half>());
  const Placement at = placement(DType::float32);
  change_sum.begin(at, halves);
  CHECK(sum(change_sum, 0, 8) == std::pair(8.0F, 8.0F));
  CHECK(sum(change_sum, 0, 8) == std::pair(8.0F, 8.0F));  // nothing is owed yet, so the result is the same
  change_sum.accept(0);
  CHECK(sum(change_sum, 1, 8) == std::pair(8.0F, 8.0F));
  CHECK(sum(change_sum, 0, 8) == std::pair(12.0F, 8.0F));
}

TEST_CASE("change sum: its state holds what is owed, and what a sum has left that is not accepted") {
  SingleProcess alone;
  const Placement at = placement(DType::float32);
  ChangeSum first(alone, std::make_unique<Half>());
  first.begin(at, halves);
  sum(first, 0, 8);
  first.accept(0);
  sum(first, 0, 8);
  std::vector<StrategyState> state;
  first.keep(false, state);
  for (const bool is_accepted : {false, true}) {
    ChangeSum second(alone, std::make_unique<Half>());
    second.begin(at, halves);
    for (const StrategyState& part : state) {
      CHECK(part.of_rank);
      second.take(part);
    }
    if (is_accepted) second.accept(0);
    CHECK(sum(second, 0, 0).first == (is_accepted ? 6 : 4));
  }
}

// A state with the name `owed.` has owed gradients and is ignored, because its unit does not fit a mean of
// changes. A state with the name `owed_change.` is used.
TEST_CASE("change sum: what a checkpoint holds in another form is not brought") {
  SingleProcess alone;
  ChangeSum change_sum(alone, std::make_unique<Half>());
  const Placement at = placement(DType::float32);
  change_sum.begin(at, halves);
  change_sum.take({"owed.first", Tensor::of<float>(Shape{16}, std::vector<float>(16, 8)), true});
  CHECK(sum(change_sum, 0, 0).first == 0);
  change_sum.take({"owed_change.first", Tensor::of<float>(Shape{16}, std::vector<float>(16, 8)), true});
  CHECK(sum(change_sum, 0, 0).first == 8);
}

TEST_CASE("change sum: without a compression everything crosses as it is, in any type, and nothing is kept") {
  SingleProcess alone;
  ChangeSum change_sum(alone, nullptr);
  const Placement at = placement(DType::float64);
  change_sum.begin(at, halves);
  std::vector<double> changes(17, 3);
  change_sum.sum(0, std::span(changes), "the test");
  change_sum.accept(0);
  CHECK(changes == std::vector<double>(17, 3));
  std::vector<StrategyState> state;
  change_sum.keep(true, state);
  CHECK(state.empty());
}

TEST_CASE("change sum: changes of float64 are not compressed") {
  SingleProcess alone;
  ChangeSum change_sum(alone, std::make_unique<Half>());
  const Placement at = placement(DType::float64);
  CHECK_THROWS_WITH_AS(
      change_sum.begin(at, halves),
      "distributed.compression compresses changes of float32 weights, not float64; set it to none",
      UserError);
}

}  // namespace plexaura::testing::change_sum_test
