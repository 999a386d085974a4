// A strategy may show other weights than those that train. Validation and checkpoints use the shown weights,
// and the next step continues with the trained ones.

#include <cmath>
#include <doctest/doctest.h>

#include "tests/contracts/ranks/rows_run.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint.h"

namespace plexaura::testing::shown_weights_test {

namespace {

// Shows zeros as weights.
class Zeros final : public Strategy, public WeightExchange {
 public:
  StrategyParts parts() override {
    return {.weights = this, .scope = GradientScope::local, .shows_weights = true};
  }
  void begin(WeightsImmigration& border) override { border_ = &border; }
  void show_weights() override {
    CHECK(++shown == returned + 1);
    own = border_->emigrate("weight");
    border_->immigrate("weight", Tensor(RowsRun::weight));
  }
  void take_weights_back() override {
    CHECK(++returned == shown);
    border_->immigrate("weight", own);
  }

  Tensor own;
  int shown = 0;
  int returned = 0;

 private:
  WeightsImmigration* border_ = nullptr;
};

class Losses final : public TrainingObserver {
 public:
  void epoch(const EpochRecord& record) override { validated.push_back(record.val_loss); }
  std::vector<double> validated;
};

std::vector<double> train(RowsRun& run, Strategy* strategy, const std::filesystem::path& folder) {
  SingleProcess alone;
  TrainerParts parts = run.parts(20, alone, strategy);
  parts.validation = parts.train;
  Trainer trainer(parts, {.batch_size = 8, .epochs = 3, .steps = 8, .learning_rate = 0.5, .output = folder});
  Losses losses;
  trainer.run(losses);
  return losses.validated;
}

}  // namespace

TEST_CASE("the weights that a strategy shows are validated and saved, and train no step") {
  const TemporaryFolder folder;
  RowsRun shown;
  RowsRun plain;
  Zeros strategy;
  const auto validated = train(shown, &strategy, folder.path());
  train(plain, nullptr, {});
  CHECK(validated.size() == 2);
  for (const double loss : validated) CHECK(loss == doctest::Approx(std::log(3.0)));
  CHECK(strategy.own == plain.store.read("weight"));
  CHECK(shown.store.read("weight") == Tensor(RowsRun::weight));
  CHECK(strategy.shown == 3);  // after two epochs, and at the end
  RowsRun saved;
  saved.store.place(shown.store.placement(), *saved.backend);
  load_checkpoint(folder.path(), saved.store, "sgd");
  CHECK(saved.store.read("weight") == Tensor(RowsRun::weight));
}

}  // namespace plexaura::testing::shown_weights_test
