// Trains a small residual net on images of bytes: a first convolution with pooling, residual blocks, batch
// norm everywhere, and global average pooling. Its steps change the weights like those of the portable
// kernels, in each precision.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>

#include "models/zoo/resnet.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::residual_net_test {

namespace {

constexpr std::int64_t classes = 4;

// Images of bytes: an image of the class plus noise.
class Photos final : public SampleSource {
 public:
  std::int64_t size() const override { return 8; }
  std::vector<Field> fields() const override {
    return {{"samples", {DType::uint8, {3, 64, 64}}}, {"labels", {DType::int64, {}}}};
  }
  void read_fields(std::int64_t index, const SampleContext&,
                   std::span<const std::span<std::byte>> values) const override {
    const std::int64_t label = index % classes;
    Random of_class(static_cast<std::uint64_t>(label) + 1);
    Random noise(static_cast<std::uint64_t>(index) + 100);
    for (std::byte& pixel : values[0])
      pixel = static_cast<std::byte>(of_class.between(0, 150) + noise.between(0, 100));
    std::copy_n(reinterpret_cast<const std::byte*>(&label), sizeof label, values[1].data());
  }
};

struct Quiet final : TrainingObserver {
  void step(const StepRecord& record, std::int64_t) override { loss = record.loss; }
  double loss = 0;
};

// ResNet18 with few channels, after two steps.
struct Run {
  Run(Backend& backend, const ArenaTypes& types)
      : net({.sample_shape = {3, 64, 64}, .classes = classes},
            {.stages = {2, 2, 2, 2}, .bottleneck = false, .width = 8, .zero_init_residual = false}),
        store(make_store(net, DType::float32, 1)) {
    store.set_types(types);
    const std::vector<Tensor> before = values();
    // With a larger scale the first step would be skipped because of infinite gradients.
    constexpr float scale_of_small_steps = 256;
    TrainerOptions options{.batch_size = 4, .steps = 2, .learning_rate = 0.01, .seed = 1};
    options.optimizer = {.momentum = 0.9};
    Trainer trainer({builder_of(net), store, backend, std::make_shared<Photos>()}, options);
    if (types.scales_loss()) store.write_loss_scale({.scale = scale_of_small_steps});
    trainer.run(seen);
    changes = values();
    for (std::size_t i = 0; i < changes.size(); ++i)
      for (std::size_t k = 0; k < changes[i].as<float>().size(); ++k)
        changes[i].as<float>()[k] -= before[i].as<float>()[k];
  }

  std::vector<Tensor> values() const {
    std::vector<Tensor> all;
    for (const ParameterSpec& spec : store.specs()) all.push_back(store.read(spec.name));
    return all;
  }

  ResNet net;
  ParameterStore store;
  Quiet seen;
  std::vector<Tensor> changes;
};

double squares(const std::vector<double>& of) {
  double sum = 0;
  for (const double value : of) sum += value * value;
  return sum;
}

// Returns the distance of the changes of all weights from the expected ones, relative to the length of the
// expected ones.
double distance(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  double apart = 0;
  double all = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<double> of = found[i].to_doubles();
    const std::vector<double> from = expected[i].to_doubles();
    all += squares(from);
    for (std::size_t k = 0; k < of.size(); ++k) of[k] -= from[k];
    apart += squares(of);
  }
  return std::sqrt(apart / all);
}

// Returns true for the far device, which computes the bits of the portable kernels. Other devices add in another
// order.
bool bitwise_here() { return test_backend().info().name == "far"; }

// In 16 bits the portable kernels differ from their results in float32 by a certain distance. Other kernels
// may round elsewhere, but must not be farther than this from the results in float32, nor farther than this
// from the portable kernels.
void check_follows(const ArenaTypes& types, double tolerance_of_loss) {
  constexpr double as_far = 1.2;
  constexpr double in_float32 = 1e-3;
  const Run run(test_backend(), types);
  const Run expected(oracle(), types);
  const Run exact(oracle(), ArenaTypes::all(DType::float32));
  for (std::size_t i = 0; i < run.changes.size(); ++i) {
    CAPTURE(run.store.specs()[i].name);
    CHECK(squares(expected.changes[i].to_doubles()) > 0);
    if (bitwise_here()) CHECK(run.changes[i] == expected.changes[i]);
  }
  const double rounding = distance(expected.changes, exact.changes);
  CHECK(distance(run.changes, exact.changes) <= as_far * rounding + in_float32);
  CHECK(distance(run.changes, expected.changes) <= rounding + in_float32);
  CHECK(run.seen.loss == doctest::Approx(expected.seen.loss).epsilon(tolerance_of_loss));
}

}  // namespace

TEST_CASE("a residual net learns like the portable kernels in float32") {
  check_follows(ArenaTypes::all(DType::float32), 1e-3);
}

TEST_CASE("a residual net learns like the portable kernels in bfloat16") {
  check_follows(ArenaTypes::mixed(DType::bfloat16), 0.1);
}

TEST_CASE("a residual net learns like the portable kernels in float16") {
  check_follows(ArenaTypes::mixed(DType::float16), 0.02);
}

}  // namespace plexaura::testing::residual_net_test
