// The amounts that a strategy reports as exchanged reach the record of each epoch. On a device that computes
// by itself, the record has no time for which the host has waited.

#include <doctest/doctest.h>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/contracts/ranks/rows_run.h"
#include "tests/support/backend.h"

namespace plexaura::testing::exchange_record_test {

namespace {

// Reports ten bytes a step, and a wait for a quarter of the exchange.
class Counting final : public Strategy, public WeightExchange {
 public:
  StrategyParts parts() override { return {.weights = this, .scope = GradientScope::local}; }
  void after_update() override { ++steps_; }
  std::optional<ExchangeRecord> take_exchange_record() override {
    const auto steps = static_cast<double>(std::exchange(steps_, 0));
    return ExchangeRecord{.bytes = static_cast<std::int64_t>(10 * steps),
                          .seconds = steps,
                          .overlaps = true,
                          .waited_seconds = steps / 4};
  }

 private:
  int steps_ = 0;
};

class Epochs final : public TrainingObserver {
 public:
  void epoch(const EpochRecord& record) override { seen.push_back(record); }
  std::vector<EpochRecord> seen;
};

std::vector<EpochRecord> train(Strategy* strategy) {
  RowsRun run;
  SingleProcess alone;
  Trainer trainer(run.parts(20, alone, strategy), {.batch_size = 8, .epochs = 2, .learning_rate = 0.5});
  Epochs epochs;
  trainer.run(epochs);
  return epochs.seen;
}

}  // namespace

TEST_CASE("the record of an epoch holds what was exchanged in its steps") {
  const bool host_is_the_device = test_backend().info().host_memory;
  Counting strategy;
  const auto epochs = train(&strategy);
  REQUIRE(epochs.size() == 2);
  for (const EpochRecord& epoch : epochs) {
    REQUIRE(epoch.exchange);
    CHECK(epoch.exchange->bytes == 30);
    CHECK(epoch.exchange->overlap().has_value() == host_is_the_device);
    CHECK(epoch.exchange->overlap().value_or(0.75) == 0.75);
  }
  CHECK_FALSE(train(nullptr)[0].exchange);
}

}  // namespace plexaura::testing::exchange_record_test
