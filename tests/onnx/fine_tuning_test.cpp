// A model that comes from an ONNX file is trained on one rank and on two, saved, exported again, and run.

#include <doctest/doctest.h>
#include <functional>
#include <optional>

#include "onnx/exporter.h"
#include "onnx/open_batch.h"
#include "onnx/runner.h"
#include "onnx/stored_data.h"

#include "backends/registry.h"
#include "core/ops/cross_entropy.h"
#include "models/predictor.h"
#include "models/zoo/model.h"
#include "testing/values.h"
#include "tests/contracts/ranks/summing_strategy.h"
#include "tests/support/backend.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_collective.h"
#include "training/checkpoints/weights.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::fine_tuning_test {

namespace {

using testing::Random;

constexpr std::int64_t classes = 3;

using BuildNet = std::function<Node(const Node&)>;

std::string export_for(std::int64_t samples, const BuildNet& net, const ParameterStore& store,
                       const Shape& sample) {
  Graph graph(Mode::inference);
  const Node x = graph.input("samples", {DType::float32, batched(samples, sample)});
  return onnx::export_graph(std::vector<onnx::ExportedOutput>{{"outputs", net(x)}}, store);
}

std::string export_open(const BuildNet& net, const ParameterStore& store, const Shape& sample) {
  return onnx::with_open_batch(export_for(7907, net, store, sample), export_for(7919, net, store, sample));
}

// Returns the file of a model of the zoo, whose scales and running moments are not those at which they start.
std::string file_of(const std::string& yaml, const Shape& sample) {
  const auto model = make_model(Config::parse("model: " + yaml, "x.yaml"), sample, classes);
  ParameterStore store = make_store(*model, DType::float32, 1);
  Random random(1);
  for (const ParameterSpec& spec : store.specs())
    if (spec.name.find("bn") != std::string::npos) store.write(spec.name, random.tensor(spec.type, 0.5, 1.5));
  const BuildNet net = [&](const Node& x) { return (*model)(x); };
  return export_open(net, store, sample);
}

struct Samples {
  explicit Samples(const Shape& sample)
      : values(Random(2).tensor({DType::float32, batched(8, sample)}, -1, 1)) {}

  Tensor values;
  Tensor labels = Tensor::of<std::int64_t>({8}, {0, 1, 2, 2, 1, 0, 1, 2});
};

// Trains for three steps, and returns the store.
ParameterStore trained(onnx::FileModel& model, const Samples& samples, Backend& backend,
                       Collective* ranks = nullptr) {
  ParameterStore store = model.make_store();
  std::optional<testing::SummingStrategy> strategy;
  if (ranks != nullptr) strategy.emplace(*ranks);
  const ModelBuilder build = [&model](const ModelInputs& inputs) -> LossOutputs {
    return {softmax_cross_entropy(model(inputs["samples"]), inputs["labels"])};
  };
  TrainerOptions options{.batch_size = 4, .steps = 3, .learning_rate = 0.1, .seed = 1};
  Trainer trainer({.model = build,
                   .store = store,
                   .backend = backend,
                   .train = tensor_dataset({{"samples", samples.values}, {"labels", samples.labels}}),
                   .collective = ranks,
                   .strategy = strategy ? &*strategy : nullptr},
                  options);
  trainer.run();
  return store;
}

double largest_change(const ParameterStore& one, const ParameterStore& other) {
  double largest = 0;
  for (const ParameterSpec& spec : one.specs())
    largest = std::max(largest, onnx::largest_distance(one.read(spec.name), other.read(spec.name)));
  return largest;
}

// Trains the model of a file on one rank and on two, saves and loads the weights, and exports the model again. Checks
// that all of these have the same parameters and outputs. Returns the largest change of a parameter by training.
double check_fine_tuning(const std::string& bytes, const Shape& sample) {
  const Samples samples(sample);
  onnx::FileModel model(bytes, "model.onnx");
  const ParameterStore start = model.make_store();
  ParameterStore alone = trained(model, samples, testing::test_backend());
  testing::ThreadRanks(2).run([&](Collective& ranks) {
    const auto backend = open_backend(testing::test_backend().info().name);
    onnx::FileModel of_rank(bytes, "model.onnx");
    const ParameterStore together = trained(of_rank, samples, *backend, &ranks);
    if (ranks.rank() == 0) CHECK(largest_change(alone, together) <= 1e-6);
  });

  const testing::TemporaryFolder folder;
  save_weights(folder / "tuned.safetensors", alone);
  onnx::FileModel again(bytes, "model.onnx");
  ParameterStore loaded = again.make_store();
  load_weights(folder / "tuned.safetensors", loaded);
  CHECK(largest_change(alone, loaded) == 0);

  const BuildNet net = [&](const Node& x) { return again(x); };
  onnx::FileModel tuned(export_open(net, loaded, sample), "tuned.onnx");
  CHECK(tuned.parameter_names() == again.parameter_names());
  ParameterStore of_tuned = tuned.make_store();
  Predictor predict([&](const Node& x) { return model(x); }, alone, testing::test_backend());
  const Tensor outputs =
      onnx::Runner(tuned, of_tuned, testing::test_backend())({{"samples", samples.values}}).at(0);
  CHECK(onnx::largest_distance(outputs, predict(samples.values)) <= 1e-6);
  return largest_change(start, alone);
}

}  // namespace

TEST_CASE("a convolutional net from a file is tuned on two ranks as on one, and exported again") {
  const Shape sample{3, 16, 16};
  const std::string bytes = file_of("{name: resnet, stages: [1, 1], block: basic, width: 4}", sample);
  CHECK(check_fine_tuning(bytes, sample) > 1e-3);
  onnx::FileModel model(bytes, "model.onnx");
  const ParameterStore start = model.make_store();
  const ParameterStore after = trained(model, Samples(sample), testing::test_backend());
  // A file for inference keeps the moments of batch norm, and trains its scales and shifts.
  CHECK(after.read("bn1.running_mean") == start.read("bn1.running_mean"));
  CHECK(after.read("bn1.running_var") == start.read("bn1.running_var"));
  CHECK(after.read("bn1.weight") != start.read("bn1.weight"));
}

TEST_CASE("a recurrent net from a file is tuned on two ranks as on one, and exported again") {
  const std::string lstm = "{type: lstm, units: 6}, {type: last_step}, {type: linear}";
  const Shape sample{4, 5};
  CHECK(check_fine_tuning(file_of("{name: convnet, layers: [" + lstm + "]}", sample), sample) > 1e-3);
}

TEST_CASE("a transformer from a file is tuned on two ranks as on one, and exported again") {
  const std::string encoder =
      "{type: transformer_encoder, heads: 2, feedforward: 8, norm_first: true}, {type: mean_of_steps}, "
      "{type: linear}";
  const Shape sample{5, 4};
  CHECK(check_fine_tuning(file_of("{name: convnet, layers: [" + encoder + "]}", sample), sample) > 1e-3);
}

}  // namespace plexaura::fine_tuning_test
