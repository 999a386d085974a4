#include "distributed/servers/push_judge.h"

#include <doctest/doctest.h>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::push_judge_test {

namespace {

using Numbers = std::vector<float>;

constexpr ServerRule weights_rule{.push = ServerRule::Push::weights, .mix = 0.5};
constexpr ServerRule changes_rule{.push = ServerRule::Push::changes, .mix = 1};

// Judges a push of one client, with two trainable parameters and a buffer. Returns the reason if it is
// refused, and "" otherwise.
std::string take_in(PushJudge& judge, const ServerRule& rule, const Numbers& pushed, Numbers& weights) {
  const auto bytes = std::as_writable_bytes(std::span(weights));
  return judge.take_in(rule, {DType::float32, 2}, {.content = std::as_bytes(std::span(pushed))}, bytes)
      .value_or("");
}

}  // namespace

TEST_CASE("push judge: a push is mixed in, or leaves the weights as they are") {
  PushJudge judge;
  Numbers weights{3, 4, 8};
  CHECK(take_in(judge, weights_rule, {5, 8, 4}, weights).empty());
  CHECK(weights == Numbers{4, 6, 6});
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e30F})
    for (const ServerRule& rule : {weights_rule, changes_rule}) {
      CHECK_FALSE(take_in(judge, rule, {5, bad, 4}, weights).empty());
      CHECK(weights == Numbers{4, 6, 6});
    }
  CHECK(take_in(judge, weights_rule, {5, std::numeric_limits<float>::infinity(), 4}, weights) ==
        "the server takes in no weights that are not finite: training diverged; lower the learning rate");
}

TEST_CASE("push judge: finite pushes whose sum is not finite are refused, in buffers as well") {
  PushJudge judge;
  Numbers weights{2e38F, 0, 0};
  CHECK(contains(take_in(judge, changes_rule, {2e38F, 0, 0}, weights), "would not be finite"));
  CHECK(weights == Numbers{2e38F, 0, 0});
  weights = {1, 1, -3e38F};
  CHECK(contains(take_in(judge, changes_rule, {0, 0, 3e38F}, weights), "would not be finite"));
}

TEST_CASE("push judge: a change is too large beside the weights and what other pushes have changed") {
  PushJudge judge(10);
  Numbers weights{3, 4, 0};
  CHECK(contains(
      take_in(judge, changes_rule, {60, 0, 0}, weights),
      "changes the weights by 60, which is more than 10 times their norm of 5 and the 0 of other pushes"));
  CHECK(take_in(judge, changes_rule, {-30, -40, 0}, weights).empty());
  weights = {3, 4, 0};
  CHECK(take_in(judge, changes_rule, {300, 0, 0}, weights).empty());  // others have made changes of 50
}

// The changes become smaller during a run, but not those of a client that joins late.
TEST_CASE("push judge: ten times the learning rate of the others is no divergence, also late in a run") {
  for (const ServerRule& rule : {weights_rule, changes_rule}) {
    PushJudge judge;
    Numbers weights{1, -1, 1};
    double rate = 0.1;
    for (int push = 0; push < 200; ++push) {
      rate *= 0.95;
      const float step = static_cast<float>(push % 4 == 3 ? 10 * rate : rate);
      const bool pushes_weights = rule.push == ServerRule::Push::weights;
      const Numbers pushed{(pushes_weights ? weights[0] : 0) + step, (pushes_weights ? weights[1] : 0) - step,
                           1};
      CHECK(take_in(judge, rule, pushed, weights).empty());
    }
    CHECK(take_in(judge, rule, {2, -2, 1}, weights).empty());
  }
}

TEST_CASE("push judge: weights that are 0 may go anywhere at first") {
  PushJudge judge;
  Numbers weights{0, 0, 0};
  CHECK(take_in(judge, changes_rule, {1000, 1000, 0}, weights).empty());
}

// One of several servers may have only biases, which begin at 0. A step changes them by the learning rate.
TEST_CASE("push judge: a learning rate that grows from nothing is honest, and so are parts that are 0") {
  PushJudge judge;
  Numbers weights{0, 0, 0};
  for (int push = 0; push < 64; ++push) {
    CHECK(take_in(judge, changes_rule, {1e-6F * static_cast<float>(push * push), 0, 0}, weights).empty());
    // pushed by a client that has frozen these parameters
    CHECK(take_in(judge, changes_rule, {0, 0, 0}, weights).empty());
  }
}

TEST_CASE("push judge: a part without trainables is judged by its buffers alone") {
  PushJudge judge;
  Numbers weights{1};
  const auto push = [&](float number) {
    const Numbers pushed{number};
    return judge
        .take_in(weights_rule, {DType::float32, 0}, {.content = std::as_bytes(std::span(pushed))},
                 std::as_writable_bytes(std::span(weights)))
        .value_or("");
  };
  CHECK(push(1e30F).empty());
  CHECK(contains(push(std::numeric_limits<float>::infinity()), "not finite"));
}

TEST_CASE("push judge: one large change that was taken in does not make the next ones small") {
  PushJudge judge(10);
  Numbers weights{0, 0, 0};
  for (int push = 0; push < 5; ++push) CHECK(take_in(judge, changes_rule, {0.1F, 0, 0}, weights).empty());
  CHECK(take_in(judge, changes_rule, {-4, 0, 0}, weights).empty());
  weights = {0.1F, 0, 0};
  CHECK_FALSE(take_in(judge, changes_rule, {30, 0, 0}, weights).empty());
}

}  // namespace plexaura::testing::push_judge_test
