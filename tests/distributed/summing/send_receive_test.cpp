#include "distributed/summing/send_receive.h"

#include <doctest/doctest.h>

#include "tests/distributed/strategies/iris_run.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::send_receive_test {

namespace {

const std::string served = "distributed.strategy=send-recv";
const Settings brief{few_epochs, "training.precision=float64", "training.batch_size=7",
                     "distributed.bucket_bytes=500"};

}  // namespace

// In the last step of an epoch only one rank has a sample.
TEST_CASE("send-recv: N ranks and a server follow N ranks of allreduce bit by bit, and so one rank") {
  const auto alone = train_iris(1, brief);
  CHECK(train_iris(2, with(brief, {served}))[0].weights == alone[0].weights);
  for (const int ranks : sanitized ? std::vector{3} : std::vector{2, 4}) {
    const auto summed = train_iris(ranks, brief);
    const auto got = train_iris(ranks + 1, with(brief, {served}));
    REQUIRE(got.size() == summed.size());
    for (const IrisEnd& end : got) {
      CHECK(end.weights == summed[0].weights);
      CHECK(distance(end.values, alone[0].values) < 1e-12);
    }
  }
}

TEST_CASE("send-recv: learns the flowers as one rank does, and two runs have the same bits" *
          doctest::skip(sanitized)) {
  for (const int ranks : {2, 4}) check_learns(ranks, {served});
}

TEST_CASE("send-recv: a resumed run ends as one that was never stopped") {
  check_resumes(3, with(brief, {served}), 20);
}

}  // namespace plexaura::testing::send_receive_test
