#include "models/zoo/vgg.h"

#include <doctest/doctest.h>

#include "tests/models/zoo/specs.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::vgg_test {

namespace {

ModelInfo photos(std::int64_t side = 224) { return {{3, side, side}, 1000}; }

std::int64_t parameters(const VggOptions& options) {
  Vgg net(photos(), options);
  return trainable_elements(net);
}

}  // namespace

TEST_CASE("VGG networks have the published numbers of parameters") {
  CHECK(parameters({.depth = 11}) == 132'863'336);
  CHECK(parameters({.depth = 13}) == 133'047'848);
  CHECK(parameters({.depth = 16}) == 138'357'544);
  CHECK(parameters({.depth = 19}) == 143'667'240);
  CHECK(parameters({.depth = 16, .batch_norm = true}) == 138'365'992);
  CHECK(user_error([] { Vgg(photos(), {.depth = 12}); }) == "there is no VGG12; depth is 11, 13, 16 or 19");
}

TEST_CASE("VGG's names and shapes are torchvision's") {
  Vgg net(photos(), {.depth = 16});
  const auto specs = specs_of(net, DType::float32);
  CHECK(specs.size() == 32);
  check_shapes(specs, {{"features.0.weight", {64, 3, 3, 3}},
                       {"features.2.bias", {64}},
                       {"features.5.weight", {128, 64, 3, 3}},
                       {"features.28.weight", {512, 512, 3, 3}},
                       {"classifier.0.weight", {4096, 512 * 7 * 7}},
                       {"classifier.3.weight", {4096, 4096}},
                       {"classifier.6.bias", {1000}}});
  Vgg normed(photos(), {.depth = 16, .batch_norm = true});
  const auto with_norms = specs_of(normed, DType::float32);
  CHECK(with_norms.size() == 32 + 4 * 13);
  check_shapes(with_norms, {{"features.1.running_var", {64}}, {"features.40.weight", {512, 512, 3, 3}}});
}

TEST_CASE("VGG's linear layers get 7x7 pixels of images of any size") {
  for (const std::int64_t side : {64, 224, 256}) {
    Vgg net(photos(side), {.depth = 11});
    specs_of(net, DType::float32);
    Graph graph(Mode::inference);
    CHECK(net(graph.input("x", {DType::float32, {2, 3, side, side}})).shape() == Shape{2, 1000});
    CHECK(outputs_of_ops(graph, "max_pool2d").back() == Shape{2, 512, side / 32, side / 32});
  }
}

}  // namespace plexaura::testing::vgg_test
