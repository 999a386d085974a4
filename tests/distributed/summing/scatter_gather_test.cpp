#include "distributed/summing/scatter_gather.h"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "tests/distributed/strategies/iris_run.h"
#include "tests/support/error_text.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::scatter_gather_test {

namespace {

const std::string scattered = "distributed.strategy=scatter-gather";
// The last step of an epoch has one sample, and all ranks but the first have none.
const Settings brief{few_epochs, "training.precision=float64", "training.batch_size=7",
                     "distributed.bucket_bytes=500"};

}  // namespace

TEST_CASE("scatter-gather: N ranks follow N ranks of allreduce bit by bit, and so one rank") {
  const std::vector<Settings> optimizers{
      {},
      {"training.optimizer={name: adam, learning_rate: 0.01}"},
      {"training.optimizer={name: sgd, learning_rate: 0.1, momentum: 0.9, max_gradient_norm: 0.1}"},
      {"training.micro_batches=3"}};
  for (const auto& optimizer : optimizers) {
    const auto alone = train_iris(1, with(brief, optimizer));
    for (const int ranks : sanitized ? std::vector{3} : std::vector{2, 4}) {
      const auto summed = train_iris(ranks, with(brief, optimizer));
      const auto got = train_iris(ranks, with(with(brief, optimizer), {scattered}));
      REQUIRE(got.size() == summed.size());
      for (const IrisEnd& end : got) {
        CHECK(end.weights == summed[0].weights);
        CHECK(end.accuracy == summed[0].accuracy);
        CHECK(distance(end.values, alone[0].values) < 1e-12);
      }
    }
  }
}

TEST_CASE("scatter-gather: buffers and frozen parameters are those of allreduce") {
  const Settings settings = with(
      brief, {"model={name: convnet, layers: [{type: linear, units: 6}, {type: batch_norm}, {type: linear}]}",
              "training.batch_size=12", "training.freeze=[fc1.*]"});
  const auto summed = train_iris(3, settings);
  for (const IrisEnd& end : train_iris(3, with(settings, {scattered})))
    CHECK(end.weights == summed[0].weights);
}

TEST_CASE("scatter-gather: learns the flowers as one rank does, and two runs have the same bits" *
          doctest::skip(sanitized)) {
  for (const int ranks : {2, 4}) check_learns(ranks, {scattered});
}

// Step 20 is within an epoch. The state of the optimizer is that of rank 0.
TEST_CASE(
    "scatter-gather: a resumed run ends as one that was never stopped, with another number of ranks, too") {
  const Settings settings = with(brief, {scattered, "training.optimizer={name: adam, learning_rate: 0.01}"});
  check_resumes(3, settings, 20);
  const TemporaryFolder folder;
  const Settings saving = with(settings, {"output.dir=" + folder.path().string()});
  train_iris(2, saving, 20);
  CHECK(distance(train_iris(4, saving, {}, true)[1].values, train_iris(3, settings)[0].values) < 1e-12);
}

}  // namespace plexaura::testing::scatter_gather_test
