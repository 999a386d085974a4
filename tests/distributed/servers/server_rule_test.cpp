#include "distributed/servers/server_rule.h"

#include <doctest/doctest.h>
#include <span>
#include <vector>

namespace plexaura::testing::server_rule_test {

namespace {

using Numbers = std::vector<double>;

// Applies a push to two trainable parameters and a buffer of 4 clients. Returns the weights.
Numbers taken(const ServerRule& rule, std::int64_t staleness, const Numbers& pushed) {
  Numbers weights{8, 16, 32};
  mix_in<double>(rule, staleness, 4, 2, pushed, weights);
  return weights;
}

Numbers composed(const ServerRule& rule, const Numbers& weights, const Numbers& began) {
  Numbers push(3);
  compose_push(rule, {DType::float64, 2}, std::as_bytes(std::span(weights)), std::as_bytes(std::span(began)),
               std::as_writable_bytes(std::span(push)));
  return push;
}

Numbers pushed(const ServerRule& rule) { return composed(rule, {8, 16, 32}, {7, 18, 32}); }

}  // namespace

TEST_CASE("server rule: weights go a share of their way to those of the client") {
  const ServerRule rule{.mix = 0.25};
  CHECK(pushed(rule) == Numbers{8, 16, 32});
  CHECK(taken(rule, 0, {0, 32, 64}) == Numbers{6, 20, 40});
  CHECK(taken(rule, 7, {0, 32, 64}) == Numbers{6, 20, 40});
}

TEST_CASE("server rule: damping takes less of what is stale") {
  const ServerRule rule{.mix = 0.5, .damping = 0.5};
  CHECK(rule.share(0) == 0.5);
  CHECK(rule.share(3) == doctest::Approx(0.25));
  CHECK(taken(rule, 3, {0, 32, 64})[0] == doctest::Approx(6));
}

TEST_CASE("server rule: changes are added, and buffers go a part of their way to those of the client") {
  const ServerRule rule{.push = ServerRule::Push::changes, .mix = 1};
  CHECK(pushed(rule) == Numbers{1, -2, 32});
  CHECK(taken(rule, 7, {1, -2, 40}) == Numbers{9, 14, 34});
}

// Each client has seen a variance fall from 32 to almost 0, and the server's variance has fallen meanwhile,
// too.
TEST_CASE("server rule: a running variance stays above 0, however stale the pushes are") {
  const ServerRule rule{.push = ServerRule::Push::changes, .mix = 1};
  Numbers weights{8, 16, 32};
  for (int push = 0; push < 100; ++push) {
    const Numbers pushed = composed(rule, {8, 16, 0.5}, {8, 16, 32});
    mix_in<double>(rule, push, 4, 2, pushed, weights);
    CHECK(weights[2] >= 0.5);
  }
  CHECK(weights[2] == doctest::Approx(0.5));
}

TEST_CASE("server rule: a share of changes is added, and less of what is stale") {
  const ServerRule rule{.push = ServerRule::Push::changes, .mix = 0.5, .damping = 1};
  CHECK(taken(rule, 0, {4, -8, 40}) == Numbers{10, 12, 34});
  CHECK(taken(rule, 1, {4, -8, 40}) == Numbers{9, 14, 34});
}

TEST_CASE("server rule: a client that has gone on keeps what it has learned since its push") {
  Numbers weights{9, 14, 32};
  carry_on<double>(Numbers{6, 20, 1}, Numbers{8, 16, 32}, weights);
  CHECK(weights == Numbers{7, 18, 1});
}

}  // namespace plexaura::testing::server_rule_test
