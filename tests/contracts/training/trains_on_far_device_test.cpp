// Whole models train on any backend: Iris to the same accuracy, and the net for MNIST's digits for twenty
// steps that end with the bits of the portable kernels. On the CPU, whose library adds in another order, the
// weights are only close.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>

#include "models/config/config.h"
#include "models/zoo/model.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "training/data/idx.h"
#include "training/data/subset.h"
#include "training/data/tables/csv.h"
#include "training/data/tables/standardise.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::trains_on_far_device_test {

namespace {

struct Quiet final : TrainingObserver {
  void step(const StepRecord& record, std::int64_t) override { loss = record.loss; }
  void epoch(const EpochRecord& record) override { last = record; }
  double loss = 0;
  EpochRecord last;
};

// Images of digits: an image of the class plus noise.
class DrawnDigits final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 160; }
  Shape sample_shape() const override { return {1, 28, 28}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % 10; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& of) const override {
    of = label(index);
    Random of_class(static_cast<std::uint64_t>(of) + 1);
    Random noise(static_cast<std::uint64_t>(index) + 1000);
    for (float& pixel : sample)
      pixel = static_cast<float>((of_class.between(0, 1) > 0.7 ? 0.8 : 0.0) + noise.between(0, 0.2));
  }

 private:
  std::vector<std::string> names_{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
};

struct Data {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
};

// A model from its YAML file, after training on one rank.
struct Run {
  Run(Backend& backend, const std::string& yaml, const Data& data, TrainerOptions options)
      : config(Config::load(std::string(PLEXAURA_SOURCE) + "/models/" + yaml)) {
    const auto classes = static_cast<std::int64_t>(data.train->class_names().size());
    model = make_model(config.section("model"), data.train->sample_shape(), classes, {});
    store = std::make_unique<ParameterStore>(make_store(*model, DType::float32, 1));
    const ModelBuilder build = [&](const ModelInputs& inputs) {
      return build_loss(*model, (*model)(inputs["samples"]), inputs["labels"]);
    };
    Trainer trainer({build, *store, backend, data.train, data.validation}, std::move(options));
    trainer.run(seen);
    for (const ParameterSpec& spec : store->specs()) weights.emplace_back(spec.name, store->read(spec.name));
  }

  Config config;
  std::unique_ptr<Model> model;
  std::unique_ptr<ParameterStore> store;
  Quiet seen;
  std::vector<std::pair<std::string, Tensor>> weights;
};

Data iris() {
  const auto all = std::make_shared<CsvDataset>(std::string(PLEXAURA_SOURCE) + "/models/iris.csv",
                                                CsvOptions{.label = "species"});
  const std::vector<double> shares{0.8, 0.2};
  auto parts = stratified_split(labels_of(*all), shares, 1);
  const auto train = std::make_shared<SubsetDataset>(all, std::move(parts[0]));
  const auto validation = std::make_shared<SubsetDataset>(all, std::move(parts[1]));
  const Standardisation measured = measure_standardisation(*train);
  return {std::make_shared<StandardisedDataset>(train, measured),
          std::make_shared<StandardisedDataset>(validation, measured)};
}

// Returns MNIST if it is there, and drawn digits otherwise.
Data digits() {
  const char* data = std::getenv("PLEXAURA_DATA");
  const std::filesystem::path folder = std::filesystem::path(data == nullptr ? "" : data) / "mnist";
  std::shared_ptr<const Dataset> images = std::make_shared<DrawnDigits>();
  for (const char* end : {"", ".gz"})
    if (const auto file = folder / (std::string("train-images-idx3-ubyte") + end);
        std::filesystem::exists(file))
      images = std::make_shared<IdxDataset>(file, folder / (std::string("train-labels-idx1-ubyte") + end),
                                            IdxOptions{});
  return {images, images};
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = a.to_doubles();
  const std::vector<double> right = b.to_doubles();
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference = std::max(difference, std::abs(left[i] - right[i]));
    largest = std::max(largest, std::abs(right[i]));
  }
  return largest == 0 ? difference : difference / largest;
}

bool bitwise_here() { return test_backend().info().name == "far"; }

void check_follows(const Run& run, const Run& expected, double tolerance) {
  REQUIRE(run.weights.size() == expected.weights.size());
  for (std::size_t i = 0; i < run.weights.size(); ++i) {
    CAPTURE(run.weights[i].first);
    if (bitwise_here())
      CHECK(run.weights[i].second == expected.weights[i].second);
    else
      CHECK(largest_difference(run.weights[i].second, expected.weights[i].second) < tolerance);
  }
}

TrainerOptions adam(std::int64_t steps) {
  TrainerOptions options;
  options.batch_size = 8;
  options.steps = steps;
  options.learning_rate = 0.001;
  options.seed = 1;
  options.optimizer = {.kind = OptimizerSpec::Kind::adam};
  return options;
}

}  // namespace

TEST_CASE("Iris trains to its accuracy, in the steps of the portable kernels") {
  TrainerOptions options;
  options.batch_size = 8;
  options.epochs = 30;
  options.learning_rate = 0.02;
  options.seed = 1;
  options.optimizer = {.momentum = 0.9, .weight_decay = 0.005};
  const Data data = iris();
  const Run run(test_backend(), "iris.yaml", data, options);
  CHECK(value_of("accuracy", run.seen.last.val_metrics) >= 0.9);
  check_follows(run, Run(oracle(), "iris.yaml", data, options), 1e-3);
}

TEST_CASE("the net for digits does twenty steps at batch 8 like the portable kernels") {
  const TrainerOptions options = adam(20);
  const Data data = digits();
  const Run run(test_backend(), "mnist_cnn.yaml", data, options);
  CHECK(std::isfinite(run.seen.loss));
  CHECK(run.store->trainable_elements() == 690590);
  check_follows(run, Run(oracle(), "mnist_cnn.yaml", data, options), 1e-2);
}

TEST_CASE("the perceptron for digits does five steps at batch 8 like the portable kernels") {
  const TrainerOptions options = adam(5);
  const Data data = digits();
  const Run run(test_backend(), "mnist_mlp.yaml", data, options);
  CHECK(std::isfinite(run.seen.loss));
  check_follows(run, Run(oracle(), "mnist_mlp.yaml", data, options), 1e-2);
}

}  // namespace plexaura::testing::trains_on_far_device_test
