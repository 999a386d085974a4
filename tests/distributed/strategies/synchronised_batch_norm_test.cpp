// models/layers/batch_norm2d.h with `synchronised`, on several ranks.

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/distributed/strategies/iris_run.h"

namespace plexaura::testing::synchronised_batch_norm_test {

namespace {

// In the last step of an epoch three samples are left: one for each of three ranks, and none for the fourth.
std::vector<std::string> settings(bool synchronised, const std::string& more = "training.micro_batches=1") {
  const std::string norm =
      std::string("{type: batch_norm, synchronised: ") + (synchronised ? "true}" : "false}");
  return {
      "training.epochs=3", "training.precision=float64", "training.batch_size=9",
      "model={name: convnet, layers: [{type: linear, units: 6}, " + norm + ", {type: tanh}, {type: linear}]}",
      more};
}

}  // namespace

TEST_CASE("synchronised batch norm: any number of ranks trains as one rank does") {
  const std::vector<double> plain = train_iris(1, settings(false))[0].values;
  const std::vector<double> alone = train_iris(1, settings(true))[0].values;
  CHECK(distance(alone, plain) < 1e-10);
  for (const int ranks : {2, 3, 4})
    for (const IrisEnd& end : train_iris(ranks, settings(true))) CHECK(distance(end.values, alone) < 1e-10);
  CHECK(distance(train_iris(3, settings(false))[0].values, alone) > 0.01);
}

TEST_CASE("synchronised batch norm: micro-batches are normalised one by one, over all ranks") {
  const std::string halves = "training.micro_batches=2";
  const auto ends = train_iris(3, settings(true, halves));
  for (const IrisEnd& end : ends) CHECK(end.weights == ends[0].weights);
  CHECK(distance(ends[0].values, train_iris(1, settings(true))[0].values) > 0.01);
}

}  // namespace plexaura::testing::synchronised_batch_norm_test
