// Weights that a strategy brings late are whole wherever they are read outside of a step: in validation, in a
// checkpoint, and at the end of a run.

#include <doctest/doctest.h>
#include <limits>
#include <map>

#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/contracts/device/counting_rows.h"
#include "tests/support/backend.h"
#include "tests/support/temporary_folder.h"
#include "training/checkpoints/checkpoint.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::late_weights_test {

namespace {

const TensorType first{DType::float32, {4, 5}};
const TensorType second{DType::float32, {5, 3}};

LossOutputs model(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node hidden = tanh(matmul(inputs["samples"], graph.parameter("first", first)));
  return {softmax_cross_entropy(matmul(hidden, graph.parameter("second", second)), inputs["labels"])};
}

ParameterStore make_store() {
  return ParameterStore({{"first", first, ParameterRole::trainable, Initialiser::he_normal()},
                         {"second", second, ParameterRole::trainable, Initialiser::he_normal()}},
                        3);
}

// Takes all weights away after each update, and brings those of a bucket when they are about to be read.
class Late final : public Strategy {
 public:
  HookSet hooks() const override { return {.before_use = true, .after_update = true}; }
  void begin(WeightsImmigration& border) override { border_ = &border; }
  void after_update() override {
    for (const auto& entry : border_->entries()) {
      away_[entry.name] = border_->emigrate(entry.name);
      Tensor spoiled(entry.type);
      for (float& value : spoiled.as<float>()) value = std::numeric_limits<float>::quiet_NaN();
      border_->immigrate(entry.name, spoiled);
    }
  }
  void before_use(std::size_t bucket) override {
    CHECK(!ended_);
    ++asked_[{border_->step(), bucket}];
    for (const auto& entry : border_->entries())
      if (entry.bucket == bucket && away_.contains(entry.name))
        border_->immigrate(entry.name, away_[entry.name]);
  }
  void end() override { ended_ = true; }

  void check_asked_once_an_update() const {
    for (const auto& [place, times] : asked_) CHECK(times <= 2);  // that of the last update, and the next
  }

 private:
  WeightsImmigration* border_ = nullptr;
  std::map<std::string, Tensor> away_;
  std::map<std::pair<std::int64_t, std::size_t>, int> asked_;
  bool ended_ = false;
};

class Keeping final : public TrainingObserver {
 public:
  void epoch(const EpochRecord& record) override { losses.push_back(record.val_loss); }
  std::vector<double> losses;
};

struct Run {
  explicit Run(Strategy* strategy, std::optional<std::int64_t> steps) {
    SingleProcess alone;
    Trainer trainer({.model = model,
                     .store = store,
                     .backend = test_backend(),
                     .train = std::make_shared<const CountingRows>(20, 4),
                     .validation = std::make_shared<const CountingRows>(7, 4),
                     .collective = &alone,
                     .strategy = strategy},
                    {.batch_size = 8,
                     .micro_batches = 2,
                     .epochs = 3,
                     .steps = steps,
                     .learning_rate = 0.1,
                     .output = folder.path(),
                     .bucket_bytes = 1});
    trainer.run(seen);
  }

  std::string saved() const { return read_text(*newest_checkpoint(folder.path()) / "weights.safetensors"); }

  TemporaryFolder folder;
  ParameterStore store = make_store();
  Keeping seen;
};

}  // namespace

TEST_CASE("weights that arrive late are whole in validation, in checkpoints and at the end") {
  for (const std::optional<std::int64_t> steps : {std::optional<std::int64_t>(), std::optional(5L)}) {
    Late strategy;
    const Run late(&strategy, steps);
    const Run plain(nullptr, steps);
    CHECK(late.seen.losses == plain.seen.losses);
    CHECK(late.saved() == plain.saved());
    for (const char* name : {"first", "second"}) CHECK(late.store.read(name) == plain.store.read(name));
    strategy.check_asked_once_an_update();
  }
}

}  // namespace plexaura::testing::late_weights_test
