// Tests models/layers/batch_norm.h with `synchronised` on several ranks.

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/distributed/strategies/iris_run.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::synchronised_batch_norm_test {

namespace {

// The last step of an epoch has three samples: one for each of three ranks, and none for the fourth.
Settings settings(bool synchronised, const Settings& more = {}) {
  const std::string norm =
      std::string("{type: batch_norm, synchronised: ") + (synchronised ? "true}" : "false}");
  return with({"training.epochs=3", "training.precision=float64", "training.batch_size=9",
               "model={name: convnet, layers: [{type: linear, units: 6}, " + norm +
                   ", {type: tanh}, {type: linear}]}"},
              more);
}

}  // namespace

TEST_CASE("synchronised batch norm: any number of ranks trains as one rank does") {
  const std::vector<double> plain = train_iris(1, settings(false))[0].values;
  const std::vector<double> alone = train_iris(1, settings(true))[0].values;
  CHECK(distance(alone, plain) < 1e-10);
  for (const std::string strategy : {"allreduce", "reduce-broadcast", "send-recv", "scatter-gather"})
    for (const int trainers : sanitized ? std::vector{3} : std::vector{2, 3, 4}) {
      CAPTURE(strategy);
      const int ranks = strategy == "send-recv" ? trainers + 1 : trainers;  // includes the server
      const auto ends = train_iris(ranks, settings(true, {"distributed.strategy=" + strategy}));
      REQUIRE(ends.size() == static_cast<std::size_t>(trainers));
      for (const IrisEnd& end : ends) CHECK(distance(end.values, alone) < 1e-10);
    }
}

TEST_CASE("synchronised batch norm: a run is repeated bit for bit, and by each strategy") {
  const std::string expected = train_iris(3, settings(true))[0].weights;
  for (const std::string strategy : {"allreduce", "reduce-broadcast", "send-recv", "scatter-gather"}) {
    CAPTURE(strategy);
    const int ranks = strategy == "send-recv" ? 4 : 3;
    for (const IrisEnd& end : train_iris(ranks, settings(true, {"distributed.strategy=" + strategy})))
      CHECK(end.weights == expected);
  }
}

TEST_CASE("synchronised batch norm: gradients may be exchanged by another thread") {
  const Settings off{"distributed.bucket_bytes=100", "distributed.overlap=off"};
  const Settings on{"distributed.bucket_bytes=100", "distributed.overlap=on"};
  const std::string expected = train_iris(3, settings(true, off))[0].weights;
  for (const IrisEnd& end : train_iris(3, settings(true, on))) CHECK(end.weights == expected);
}

TEST_CASE("synchronised batch norm: float32 differs from one rank by rounding alone") {
  const std::string narrow = "training.precision=float32";
  const std::vector<double> alone = train_iris(1, settings(true, {narrow}))[0].values;
  CHECK(distance(train_iris(3, settings(true, {narrow}))[0].values, alone) < 1e-3);
}

TEST_CASE("synchronised batch norm: refused where ranks do not make each step together") {
  const Settings server{"distributed.strategy=async-server", "training.batch_size=12"};
  const std::string said = error_text<InternalError>([&] { train_iris(3, settings(true, server)); });
  CAPTURE(said);
  CHECK(said.find("the model calls all ranks in each step, by ") != std::string::npos);
  CHECK(said.find("use batch norm of each rank's own samples, or another distributed.strategy") !=
        std::string::npos);
  CHECK(train_iris(3, settings(false, server)).size() == 2);
}

TEST_CASE("without it each rank has statistics of its own, over all samples and over micro-batches") {
  for (const char* parts : {"training.micro_batches=1", "training.micro_batches=2"}) {
    const Settings even{"training.batch_size=12", parts};
    const auto synchronised = train_iris(3, settings(true, even));
    for (const IrisEnd& end : synchronised) CHECK(end.weights == synchronised[0].weights);
    const std::vector<double> own = train_iris(3, settings(false, even))[0].values;
    CHECK(distance(synchronised[0].values, own) > 0.01);
  }
}

}  // namespace plexaura::testing::synchronised_batch_norm_test
