#include "distributed/strategies/strategies.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/distributed/strategies/iris_run.h"

namespace plexaura::testing::strategies_test {

TEST_CASE("make_strategy: one rank needs none, a wrong name is told with the nearest") {
  const std::unique_ptr<Communicator> alone = make_communicator();
  for (const std::string& name : strategy_names()) CHECK(make_strategy({.name = name}, *alone) == nullptr);
  CHECK_THROWS_WITH_AS(make_strategy({.name = "allreduced"}, *alone),
                       "there is no strategy 'allreduced'; known are allreduce, reduce-broadcast, send-recv, "
                       "scatter-gather, local, elastic, async-server, downpour; did you mean 'allreduce'?",
                       UserError);
  CHECK_THROWS_WITH_AS(make_strategy({.name = ""}, *alone),
                       "there is no strategy ''; known are allreduce, reduce-broadcast, send-recv, "
                       "scatter-gather, local, elastic, async-server, downpour",
                       UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy({.name = "local", .compression = {.name = "powersgd"}}, *alone),
      "the strategy 'local' does not compress with 'powersgd'; it can take none, fp16, bf16, top-k, "
      "and allreduce any",
      UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy({.name = "downpour", .compression = {.name = "fp16"}}, *alone),
      "the strategy 'downpour' does not compress with 'fp16'; it can take none, and allreduce any",
      UserError);
  for (const char* name : {"reduce-broadcast", "send-recv", "allreduce"})
    CHECK_THROWS_WITH_AS(make_strategy({.name = name, .compression = {.name = "fp61"}}, *alone),
                         "there is no compression 'fp61'; known are none, fp16, bf16, top-k, powersgd; did "
                         "you mean 'fp16'?",
                         UserError);
  CHECK_THROWS_WITH_AS(make_strategy({.name = "local", .local = {.every = 2, .fragments = 3}}, *alone),
                       "local averages its fragments in turn within `every` steps, and 3 fragments do not "
                       "fit into 2 steps; set fragments to at most `every`",
                       UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy({.name = "local", .update = BucketSum::Update::by_step, .local = {.delay = 1}}, *alone),
      "if the run continues without lost ranks, local cannot delay its exchanges; set delay to 0", UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy(
          {.name = "downpour", .update = BucketSum::Update::by_step, .async_server = {.servers = 2}}, *alone),
      "if the run continues without lost ranks, it has only one parameter server; set servers to 1",
      UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy({.name = "downpour", .update = BucketSum::Update::by_step, .async_server = {.group = 2}},
                    *alone),
      "if the run continues without lost ranks, each client of a server is one rank; set group to 1",
      UserError);
  CHECK_THROWS_WITH_AS(
      make_strategy({.name = "local", .overlap = Overlap::on}, *alone),
      "the strategy 'local' does not overlap; choose allreduce or reduce-broadcast, or overlap off",
      UserError);
}

// The limit is for the norm of the gradients of all ranks together, over all buckets.
TEST_CASE("synchronous strategies limit the norm of the gradients as one rank does") {
  const Settings settings{"training.epochs=2", "training.precision=float64", "training.batch_size=7",
                          "distributed.bucket_bytes=500"};
  const std::vector<double> unlimited = train_iris(1, settings)[0].values;
  const Settings limited = with(settings, {"training.optimizer.max_gradient_norm=0.1"});
  const std::vector<double> alone = train_iris(1, limited)[0].values;
  CHECK(distance(alone, unlimited) > 0.01);
  for (const char* strategy : {"allreduce", "reduce-broadcast", "send-recv", "scatter-gather"}) {
    CAPTURE(strategy);
    for (const IrisEnd& end : train_iris(3, with(limited, {std::string("distributed.strategy=") + strategy})))
      CHECK(distance(end.values, alone) < 1e-12);
  }
}

}  // namespace plexaura::testing::strategies_test
