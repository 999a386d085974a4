// A strategy may show other weights than those that train. Validation and checkpoints use the shown weights,
// and the next step continues with the trained ones.

#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "tests/contracts/device/counting_rows.h"
#include "tests/support/backend.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::shown_weights_test {

namespace {

const TensorType weight{DType::float32, {4, 3}};

LossOutputs model(const ModelInputs& inputs) {
  return {softmax_cross_entropy(matmul(inputs["samples"], inputs.graph().parameter("weight", weight)),
                                inputs["labels"])};
}

ParameterStore make_store() {
  return ParameterStore({{"weight", weight, ParameterRole::trainable, Initialiser::he_normal()}}, 3);
}

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
    border_->immigrate("weight", Tensor(weight));
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

std::vector<double> train(ParameterStore& store, Strategy* strategy, const std::filesystem::path& folder) {
  const auto rows = std::make_shared<const CountingRows>(20, 4);
  SingleProcess alone;
  Trainer trainer({.model = model,
                   .store = store,
                   .backend = test_backend(),
                   .train = rows,
                   .validation = rows,
                   .collective = &alone,
                   .strategy = strategy},
                  {.batch_size = 8, .epochs = 3, .steps = 8, .learning_rate = 0.5, .output = folder});
  Losses losses;
  trainer.run(losses);
  return losses.validated;
}

}  // namespace

TEST_CASE("the weights that a strategy shows are validated and saved, and train no step") {
  const TemporaryFolder folder;
  ParameterStore shown = make_store();
  ParameterStore plain = make_store();
  Zeros strategy;
  const auto validated = train(shown, &strategy, folder.path());
  train(plain, nullptr, {});
  CHECK(validated.size() == 2);
  for (const double loss : validated) CHECK(loss == doctest::Approx(std::log(3.0)));
  CHECK(strategy.own == plain.read("weight"));
  CHECK(shown.read("weight") == Tensor(weight));
  CHECK(strategy.shown == 3);  // after two epochs, and at the end
  ParameterStore saved = make_store();
  saved.place(shown.placement(), test_backend());
  load_checkpoint(folder.path(), saved, "sgd");
  CHECK(saved.read("weight") == Tensor(weight));
}

}  // namespace plexaura::testing::shown_weights_test
