// Your own model, from declaration to training. docs/guide/writing_a_model.md explains it line by line.
// Run it from the project's folder: build/examples/own_model

#include <cstdio>
#include <plexaura/plexaura.h>

using namespace plexaura;

// Adds two paths from the measurements to the species with a learned weight: a straight one and one with a
// hidden layer.
struct Flowers : Module {
  void members(MemberVisitor& visit) override {
    visit("hidden", hidden);
    visit("out", out);
    visit("straight", straight);
    visit("mix", mix);
  }

  // maps x [N, 4] to outputs [N, 3]
  Node operator()(Operand x) const {
    const Node deep = out(tanh(hidden(x)));
    return deep + mix.in(deep.graph()) * straight(x);
  }

  layers::Linear hidden{4, 16};
  layers::Linear out{16, 3};
  layers::Linear straight{4, 3, {.bias = false}};
  Parameter mix{Shape{3}, Initialiser::constant(0.5)};
};

struct Report : TrainingObserver {
  void epoch(const EpochRecord& record) override {
    if (record.epoch % 10 == 0)
      std::printf("epoch %d  loss %.4f\n", static_cast<int>(record.epoch), record.train_loss);
  }
};

// Returns the training and the validation samples of Iris, standardised by the training samples, which are
// four fifths.
std::pair<std::shared_ptr<Dataset>, std::shared_ptr<Dataset>> flowers() {
  const auto all = std::make_shared<CsvDataset>("models/iris.csv");
  const auto parts = stratified_split(labels_of(*all), std::vector{0.8, 0.2}, 1);
  const auto train = std::make_shared<SubsetDataset>(all, parts[0]);
  const auto held_out = std::make_shared<SubsetDataset>(all, parts[1]);
  const Standardisation measured = measure_standardisation(*train);
  return {std::make_shared<StandardisedDataset>(train, measured),
          std::make_shared<StandardisedDataset>(held_out, measured)};
}

int main() try {
  Flowers model;
  ParameterStore store = make_store(model, DType::float32, 1);
  const auto build = [&](const ModelInputs& inputs) {
    const Node logits = model(inputs["samples"]);
    const Node labels = inputs["labels"];
    return LossOutputs{.loss = softmax_cross_entropy(logits, labels),
                       .metrics = {{.name = "accuracy", .sum = top_k_correct(logits, labels)}}};
  };

  const auto backend = open_backend("cpu");
  const auto [train, held_out] = flowers();
  Trainer trainer(
      {.model = build, .store = store, .backend = *backend, .train = train, .validation = held_out},
      {.batch_size = 8, .epochs = 40, .optimizer = {.momentum = 0.9}, .learning_rate = 0.02});
  Report report;
  trainer.run(report);
  const double accuracy = value_of("accuracy", trainer.validate().metrics);
  std::printf("%.1f %% of the held-out flowers are classified correctly\n", 100 * accuracy);
  return accuracy > 0.9 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
