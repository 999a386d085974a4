#include "training/ranks/tail_sums.h"

#include <cstring>
#include <doctest/doctest.h>

#include "core/base/error.h"

namespace plexaura::testing::tail_sums_test {

namespace {

// Two equal ranks. Both report this duration for their steps.
class Twins final : public Collective {
 public:
  explicit Twins(double seconds, double deadline = 60) : seconds_(seconds), deadline_(deadline) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  double deadline_seconds() const override { return deadline_; }
  void sum(DType dtype, std::byte* data, std::int64_t count, std::string_view) override {
    REQUIRE(dtype == DType::float64);
    const std::span slots(reinterpret_cast<double*>(data), static_cast<std::size_t>(count));
    slots.back() = 1e6 * seconds_;
    for (double& slot : slots) slot *= 2;
  }
  void broadcast(std::byte*, std::size_t, int, std::string_view) override {}
  std::vector<std::string> gather_all(const std::string& mine, std::string_view) override {
    ++asked;
    return {mine, mine};
  }
  int asked = 0;

 private:
  double seconds_;
  double deadline_;
};

// Returns the number of steps until a sum is due, if steps before it took that long.
int due_after(TailSums& sums, bool is_busy = false) {
  int steps = 0;
  while (!sums.is_due(is_busy)) {
    sums.keep({}, nullptr);
    ++steps;
  }
  return steps;
}

}  // namespace

TEST_CASE("tail sums: those of all steps that were kept, in their order, and then of no step") {
  Twins ranks(1);
  TailSums sums(ranks, 1);
  sums.keep({.loss = 3, .samples = 4}, nullptr);
  sums.keep({.loss = 5, .samples = 2, .stop = true}, nullptr);
  const auto two = sums.add_up(false, "the loss of step 2");
  REQUIRE(two.size() == 2);
  CHECK(two[0].loss == 3);
  CHECK(two[0].samples == 8);
  CHECK_FALSE(two[0].stop);
  CHECK(two[1].loss == 5);
  CHECK(two[1].stop);
  sums.keep({.loss = 7, .samples = 1}, nullptr);
  const auto one = sums.add_up(false, "the loss of step 3");
  REQUIRE(one.size() == 1);
  CHECK(one[0].loss == 7);
  CHECK(ranks.asked == 0);
}

TEST_CASE("tail sums: a loss with a weight is divided by the weights of all ranks") {
  Twins ranks(1);
  TailSums sums(ranks, 1);
  sums.keep({.loss = 3, .samples = 4, .weight = 0.5}, nullptr);
  sums.keep({.loss = 0, .samples = 4, .weight = 0}, nullptr);
  const auto two = sums.add_up(false, "the loss of step 2");
  REQUIRE(two.size() == 2);
  CHECK(two[0].loss == 3);
  CHECK(two[0].weight == 1);
  CHECK(two[1].loss == 0);
}

TEST_CASE("tail sums: due behind the first step, and then once a second") {
  Twins ranks(0.125);
  TailSums sums(ranks, 1);
  CHECK(due_after(sums) == 1);
  sums.add_up(false, "the first");
  CHECK(due_after(sums) == 8);
  sums.add_up(false, "of steps that are eight times as fast");
  CHECK(due_after(sums) == 64);
}

TEST_CASE(
    "tail sums: late where the strategy exchanges, and never after so many steps that a rank waits for "
    "long") {
  Twins fast(1e-9);
  TailSums many(fast, 1);
  due_after(many);
  many.add_up(false, "the first");
  CHECK(due_after(many) == 1000);

  Twins slow(100);
  TailSums each(slow, 1);
  due_after(each);
  each.add_up(false, "the first");
  CHECK(due_after(each, true) == 10);
  CHECK(each.is_due(false));
}

TEST_CASE("tail sums: sooner where the ranks have a short deadline") {
  Twins ranks(0.0625, 2.5);
  TailSums sums(ranks, 1);
  due_after(sums);
  sums.add_up(false, "the first");
  CHECK(due_after(sums) == 4);
}

TEST_CASE("tail sums: behind each step where nothing is to be late") {
  Twins ranks(1e-9);
  TailSums sums(ranks, 0);
  for (int i = 0; i < 3; ++i) {
    CHECK(due_after(sums, true) == 1);
    sums.add_up(false, "one");
  }
}

TEST_CASE("tail sums: a failure is thrown when all hear of it") {
  Twins ranks(1);
  TailSums sums(ranks, 1);
  sums.keep({.failed = true}, std::make_exception_ptr(UserError("the disk is full")));
  sums.keep({.failed = true}, std::make_exception_ptr(UserError("the same again")));
  CHECK(sums.failure() != nullptr);
  CHECK_THROWS_WITH(sums.add_up(false, "the loss of step 2"), "the disk is full");
}

TEST_CASE("tail sums: a rank may be asked for a failure that no tail tells of") {
  Twins ranks(1);
  TailSums sums(ranks, 1);
  sums.keep({}, std::make_exception_ptr(UserError("a bad number in the update")));
  CHECK_THROWS_WITH(sums.add_up(true, "the loss of step 1"), "a bad number in the update");
}

}  // namespace plexaura::testing::tail_sums_test
