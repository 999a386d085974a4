// Trains a regression on a table: from speed, angle and height of a throw it predicts distance, time and
// peak.
//   build/examples/regression runs/regression

#include <cstdio>
#include <filesystem>
#include <plexaura/plexaura.h>

using namespace plexaura;

class Throws final : public Model {
 public:
  using Model::Model;
  void members(MemberVisitor& visit) override {
    visit("hidden", hidden);
    visit("out", out);
  }

 protected:
  Node forward(Operand x) const override { return out(tanh(hidden(x))); }

 private:
  layers::Linear hidden{3, 32}, out{32, 3};
};

int main(int argc, char** argv) {
  const auto table =
      std::make_shared<CsvDataset>("models/throws.csv", CsvOptions{.targets = {"distance", "time", "peak"}});
  const auto parts = stratified_split(labels_of(*table), std::vector{0.8, 0.2}, /*seed=*/1);
  const auto rows = std::make_shared<SubsetDataset>(table, parts[0]);
  // Means and deviations of features and targets.
  const Standardisation measured = measure_standardisation(*rows);
  const auto samples = [&](std::shared_ptr<const Dataset> part) {
    return std::make_shared<TargetSamples>(std::make_shared<StandardisedDataset>(part, measured), 3);
  };

  Throws model({.sample_shape = {3}, .classes = 3, .loss = Loss::mse, .task = Task::regression});
  ParameterStore store = make_store(model, DType::float32, /*seed=*/1);
  const auto backend = open_backend("cpu");
  const std::filesystem::path folder = argc > 1 ? argv[1] : "runs/regression";
  Trainer trainer({.model = builder_of(model),
                   .store = store,
                   .backend = *backend,
                   .train = samples(rows),
                   .validation = samples(std::make_shared<SubsetDataset>(table, parts[1]))},
                  {.batch_size = 16,
                   .epochs = 200,
                   .optimizer = {.kind = OptimizerSpec::adam},
                   .learning_rate = 0.01,
                   .output = folder,
                   .replace = true,
                   .goal = EpochGoal{.metric = "r2", .mode = EpochGoal::Mode::max, .patience = 20}});
  const BestEpoch best = trainer.run().best;
  load_weights(folder / "best" / "weights.safetensors", store);
  std::printf("R2 %.4f after epoch %d\n", best.value, static_cast<int>(best.epoch));
  return best.value > 0.99 ? 0 : 1;
}
