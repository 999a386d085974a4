#include "tests/training/small_run.h"

#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/labels.h"
#include "core/ops/matmul.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "training/data/dataset.h"
#include "training/data/random.h"

namespace plexaura::testing {

namespace {

constexpr std::int64_t features = 4;

class Points final : public DatasetOf<float> {
 public:
  Points(std::int64_t count, std::int64_t first) : count_(count), first_(first) {}

  std::int64_t size() const override { return count_; }
  Shape sample_shape() const override { return Shape{features}; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::int64_t label(std::int64_t index) const override { return (first_ + index) % 3; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label) const override {
    label = this->label(index);
    Random random{11, static_cast<std::uint64_t>(first_ + index)};
    for (std::size_t i = 0; i < sample.size(); ++i)
      sample[i] =
          static_cast<float>(random.below(100)) / 100 + (static_cast<std::int64_t>(i) == label ? 1.0F : 0.0F);
  }

 private:
  std::int64_t count_;
  std::int64_t first_;
  std::vector<std::string> class_names_{"a", "b", "c"};
};

}  // namespace

std::shared_ptr<const SampleSource> points(std::int64_t count, std::int64_t first) {
  return std::make_shared<Points>(count, first);
}

ParameterStore small_store(std::uint64_t seed) {
  const auto weight = [](const char* name, std::int64_t in, std::int64_t out) {
    return ParameterSpec{
        name, {DType::float64, Shape{in, out}}, ParameterRole::trainable, Initialiser::glorot_uniform()};
  };
  return ParameterStore({weight("first", features, 8), weight("second", 8, 3)}, seed);
}

LossOutputs small_model(const ModelInputs& inputs) {
  Graph& graph = inputs.graph();
  const Node first = graph.parameter("first", {DType::float64, Shape{features, 8}});
  const Node second = graph.parameter("second", {DType::float64, Shape{8, 3}});
  const Node hidden = dropout(tanh(matmul(inputs["samples"], first)), {.p = 0.2});
  const Node outputs = matmul(hidden, second);
  return {.loss = softmax_cross_entropy(outputs, inputs["labels"]),
          .metrics = {{.name = "accuracy", .sum = top_k_correct(outputs, inputs["labels"])}}};
}

TrainerOptions momentum() {
  TrainerOptions options{.batch_size = 8, .epochs = 3, .learning_rate = 0.1, .seed = 3};
  options.optimizer = {.momentum = 0.9, .weight_decay = 0.001};
  return options;
}

std::vector<double> weights(const ParameterStore& store) {
  std::vector<double> all = store.read("first").to_doubles();
  for (const double value : store.read("second").to_doubles()) all.push_back(value);
  return all;
}

void SmallRun::train(const TrainerOptions& options, std::shared_ptr<const SampleSource> training,
                     std::shared_ptr<const SampleSource> validation) {
  Trainer trainer({small_model, store, test_backend(), std::move(training), std::move(validation)}, options);
  result = trainer.run(seen);
}

}  // namespace plexaura::testing
