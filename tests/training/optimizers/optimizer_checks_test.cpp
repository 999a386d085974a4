#include "training/optimizers/optimizer_checks.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::optimizer_checks_test {

TEST_CASE("numbers that make no update are refused by their names") {
  const auto refuses = [](const OptimizerSpec& rule, const char* words) {
    CHECK(user_error([&] { check_spec(rule); }) == words);
    Graph graph;
    CHECK(user_error([&] { build_update(graph, rule, {}, make_buckets({}, 1)); }) == words);
  };
  const double nan = std::nan("");
  refuses({.kind = static_cast<OptimizerSpec::Kind>(9)},
          "the optimizer has kind = 9; it must be sgd, adam, adamw, lars, lamb, rmsprop or adagrad");
  refuses({.momentum = 1}, "the optimizer has momentum = 1; it must be at least 0 and less than 1");
  refuses({.momentum = -1}, "the optimizer has momentum = -1; it must be at least 0 and less than 1");
  refuses({.nesterov = true}, "the optimizer has momentum = 0; it must be above 0 where nesterov is set");
  refuses({.kind = OptimizerSpec::adam, .momentum = 0.9},
          "the optimizer has momentum = 0.9; it must be 0 for adam, adamw and lamb, whose momentum is beta1");
  refuses({.kind = OptimizerSpec::adagrad, .momentum = 0.9},
          "the optimizer has momentum = 0.9; it must be 0 for adagrad, which has none");
  refuses({.kind = OptimizerSpec::rmsprop, .momentum = 0.9, .nesterov = true},
          "the optimizer has nesterov = 1; it must be false for all but sgd and lars");
  refuses({.alpha = 1}, "the optimizer has alpha = 1; it must be at least 0 and less than 1");
  refuses({.centered = true}, "the optimizer has centered = 1; it must be false for all but rmsprop");
  refuses({.lr_decay = 1}, "the optimizer has lr_decay = 1; it must be 0 for all but adagrad");
  refuses({.kind = OptimizerSpec::adagrad, .lr_decay = -1},
          "the optimizer has lr_decay = -1; it must be a number from 0 on");
  refuses({.kind = OptimizerSpec::adagrad, .initial_accumulator = nan},
          "the optimizer has initial_accumulator = nan; it must be a number from 0 on");
  refuses({.beta1 = nan}, "the optimizer has beta1 = nan; it must be at least 0 and less than 1");
  refuses({.ema = 0.0}, "the optimizer has ema = 0; it must be above 0 and less than 1");
  refuses({.ema = 1.0}, "the optimizer has ema = 1; it must be above 0 and less than 1");
  refuses({.ema = nan}, "the optimizer has ema = nan; it must be above 0 and less than 1");
  refuses({.beta2 = 1}, "the optimizer has beta2 = 1; it must be at least 0 and less than 1");
  refuses({.epsilon = 0}, "the optimizer has epsilon = 0; it must be a number above 0");
  refuses({.trust_coefficient = 0}, "the optimizer has trust_coefficient = 0; it must be a number above 0");
  refuses({.weight_decay = -1}, "the optimizer has weight_decay = -1; it must be a number from 0 on");
  refuses({.weight_decay = nan}, "the optimizer has weight_decay = nan; it must be a number from 0 on");
  const char* rule = "it must be a number above 0, or 0 for no limit";
  refuses({.max_gradient_norm = -1},
          fmt::format("the optimizer has max_gradient_norm = -1; {}", rule).c_str());
  refuses({.max_gradient_norm = INFINITY},
          fmt::format("the optimizer has max_gradient_norm = inf; {}", rule).c_str());
}

TEST_CASE("the optimizer of a group is checked as any, and has no option that counts for all parameters") {
  const auto refusal = [](const OptimizerSpec& rule) {
    return user_error([&] { check_group({"*.bias", {.optimizer = rule}}); });
  };
  CHECK(refusal({.momentum = 0.9}).empty());
  CHECK(refusal({.momentum = 2}) ==
        "the group of parameters '*.bias': the optimizer has momentum = 2; it must be at least 0 and less "
        "than 1");
  CHECK(refusal({.weight_decay = 0.1}) ==
        "the group of parameters '*.bias' has an optimizer with weight_decay = 0.1, which has no effect; set "
        "the "
        "decay of the group");
  for (const OptimizerSpec& rule : std::initializer_list<OptimizerSpec>{
           {.max_gradient_norm = 1}, {.groups = {{"a"}}}, {.scaled_loss = true}, {.ema = 0.9}})
    CHECK(
        refusal(rule).starts_with("the group of parameters '*.bias' has an optimizer with max_gradient_norm, "
                                  "scaled_loss, groups or ema, which have no effect there"));
}

}  // namespace plexaura::testing::optimizer_checks_test
