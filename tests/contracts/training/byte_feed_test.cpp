// Images are fed as bytes and normalised in the graph. A run on bytes ends with the same bits of weights as a
// run on floats that were normalised before, and feeds a quarter of the bytes.

#include <doctest/doctest.h>

#include "core/ops/conv2d.h"
#include "core/ops/losses.h"
#include "core/ops/normalise_image.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "tests/contracts/training/small_training.h"
#include "tests/support/backend.h"
#include "training/data/tensor_dataset.h"
#include "training/loop/trainer.h"

namespace plexaura::testing::byte_feed_test {

namespace {

constexpr std::int64_t samples = 10;
constexpr std::int64_t pixels = 6L * 6;
const PixelScale scale{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
const TensorType weights{DType::float32, {2, 3, 3, 3}};

Tensor images() {
  Tensor bytes({DType::uint8, {samples, 3, 6, 6}});
  for (std::size_t i = 0; i < bytes.bytes(); ++i)
    bytes.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * i * 7 + i * 31);
  return bytes;
}

// Normalises in float32, operation by operation, as the op is defined.
Tensor normalised(const Tensor& bytes) {
  Tensor floats({DType::float32, bytes.shape()});
  for (std::size_t i = 0; i < bytes.bytes(); ++i) {
    const std::size_t channel = i / pixels % 3;
    const float share = static_cast<float>(bytes.as<std::uint8_t>()[i]) / 255.F;
    floats.as<float>()[i] =
        (share - static_cast<float>(scale.mean[channel])) / static_cast<float>(scale.stddev[channel]);
  }
  return floats;
}

LossOutputs model(const ModelInputs& inputs) {
  const Node x = inputs["x"];
  const Node image = x.dtype() == DType::uint8 ? normalise_image(x, {.scale = scale}) : x;
  const Node y = conv2d(image, inputs.graph().parameter("w", weights));
  return {mse(tanh(flatten(y)), inputs["t"])};
}

struct Trained {
  explicit Trained(const Tensor& x)
      : store({{"w", weights, ParameterRole::trainable, Initialiser::uniform(0.1)}}, 1) {
    const auto data = tensor_dataset({{"x", x}, {"t", whole_numbers({DType::float32, {samples, 32}}, 2, 1)}});
    Trainer trainer({model, store, test_backend(), data, data},
                    {.batch_size = 4, .micro_batches = 2, .epochs = 3, .optimizer = {.momentum = 0.5}});
    for (const Program::Feed& feed : trainer.programs().largest().feeds)
      if (feed.name == "x") fed_bytes = feed.type.bytes();
    last = trainer.run().last_epoch->val_loss;
  }

  ParameterStore store;
  std::int64_t fed_bytes = 0;
  double last = 0;
};

}  // namespace

TEST_CASE("a run on bytes ends as one on floats that were normalised before") {
  const Trained on_bytes(images());
  const Trained on_floats(normalised(images()));
  check_same_values(on_bytes.store, on_floats.store);
  CHECK(on_bytes.last == on_floats.last);
  CHECK(on_bytes.fed_bytes == 2L * 3 * pixels);
  CHECK(on_floats.fed_bytes == 4 * on_bytes.fed_bytes);
}

}  // namespace plexaura::testing::byte_feed_test
