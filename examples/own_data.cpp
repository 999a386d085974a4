// Your own data in two forms: a class that makes samples, and tensors in memory. docs/guide/own_data.md
// explains it.

#include <cstdio>
#include <plexaura/plexaura.h>

using namespace plexaura;

// Points of a grid in the plane. Class 1 is inside the unit circle, class 0 outside.
class Disc final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 1600; }
  Shape sample_shape() const override { return Shape{2}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override {
    return x(index) * x(index) + y(index) * y(index) < 1 ? 1 : 0;
  }
  void read(std::int64_t index, const SampleContext& /*context*/, std::span<float> sample,
            std::int64_t& label) const override {
    sample[0] = x(index);
    sample[1] = y(index);
    label = this->label(index);
  }

 private:
  static float x(std::int64_t index) { return static_cast<float>(index % 40) / 10 - 2; }
  static float y(std::int64_t index) {
    const std::int64_t row = index / 40;
    return static_cast<float>(row) / 10 - 2;
  }
  std::vector<std::string> names_{"outside", "inside"};
};

// Trains a classifier from YAML and returns its last training loss.
double train_on_classes(Backend& backend) {
  const auto data = std::make_shared<Disc>();
  const Config config = Config::parse("model: {name: mlp, hidden: [16]}", "disc.yaml");
  const auto model = make_model(config, data->sample_shape(), 2);
  ParameterStore store = make_store(*model, DType::float32, /*seed=*/1);
  Trainer trainer(
      {.model = builder_of(*model), .store = store, .backend = backend, .train = data},
      {.batch_size = 40, .epochs = 20, .optimizer = {.kind = OptimizerSpec::adam}, .learning_rate = 0.01});
  return trainer.run().last_epoch->train_loss;
}

struct Line final : Module {
  void members(MemberVisitor& visit) override { visit("out", out); }
  layers::Linear out{2, 1};
};

// Trains a regression and returns its last training loss.
double train_on_numbers(Backend& backend) {
  Tensor xs({DType::float32, {100, 2}});
  Tensor ys({DType::float32, {100, 1}});
  for (std::size_t i = 0; i < 100; ++i) {
    const float first = static_cast<float>(i % 10) / 10;
    const float second = static_cast<float>(i) / 100;
    xs.as<float>()[2 * i] = first;
    xs.as<float>()[2 * i + 1] = second;
    ys.as<float>()[i] = 2 * first - second;
  }
  Line model;
  ParameterStore store = make_store(model, DType::float32, /*seed=*/1);
  const auto build = [&](const ModelInputs& inputs) {
    return LossOutputs{.loss = squared_error(model.out(inputs["x"]), inputs["y"])};
  };
  Trainer trainer(
      {.model = build, .store = store, .backend = backend, .train = tensor_dataset({{"x", xs}, {"y", ys}})},
      {.batch_size = 20, .epochs = 100, .learning_rate = 0.1});
  return trainer.run().last_epoch->train_loss;
}

int main() try {
  const auto backend = open_backend("cpu");
  const double classes = train_on_classes(*backend);
  const double numbers = train_on_numbers(*backend);
  std::printf("loss of the classifier %.4f, of the regression %.6f\n", classes, numbers);
  return classes < 0.2 && numbers < 0.01 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
