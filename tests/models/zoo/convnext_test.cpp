#include "models/zoo/convnext.h"

#include <doctest/doctest.h>

#include "tests/models/zoo/specs.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::convnext_test {

namespace {

ModelInfo photos(std::int64_t side = 224) { return {{3, side, side}, 1000}; }

std::int64_t parameters(const std::string& size) {
  ConvNext net(photos(), {.size = size});
  return trainable_elements(net);
}

std::vector<Shape> dropouts(ConvNext& net, Mode mode) {
  specs_of(net, DType::float32);
  Graph graph(mode);
  CHECK(net(graph.input("x", {DType::float32, {2, 3, 64, 64}})).shape() == Shape{2, 1000});
  return outputs_of_ops(graph, "dropout");
}

}  // namespace

TEST_CASE("ConvNeXts have the published numbers of parameters") {
  CHECK(parameters("tiny") == 28'589'128);
  CHECK(parameters("small") == 50'223'688);
  CHECK(parameters("base") == 88'591'464);
  CHECK(parameters("large") == 197'767'336);
  CHECK(user_error([] { ConvNext(photos(), {.size = "huge"}); }) ==
        "there is no ConvNeXt of size 'huge'; size is tiny, small, base or large");
}

TEST_CASE("ConvNeXt's names and shapes are torchvision's") {
  ConvNext net(photos(), {});
  const auto specs = specs_of(net, DType::float32);
  CHECK(specs.size() == 182);
  check_shapes(specs, {{"features.0.0.weight", {96, 3, 4, 4}},
                       {"features.0.1.bias", {96}},
                       {"features.1.0.layer_scale", {96, 1, 1}},
                       {"features.1.0.block.0.weight", {96, 1, 7, 7}},
                       {"features.1.2.block.2.weight", {96}},
                       {"features.1.2.block.3.weight", {384, 96}},
                       {"features.2.0.weight", {96}},
                       {"features.2.1.weight", {192, 96, 2, 2}},
                       {"features.5.8.block.5.bias", {384}},
                       {"features.7.2.block.3.bias", {3072}},
                       {"classifier.0.weight", {768}},
                       {"classifier.2.weight", {1000, 768}}});
}

TEST_CASE("ConvNeXt leaves out blocks of single samples in training, but never the first block") {
  ConvNext net(photos(64), {});
  const std::vector<Shape> trained = dropouts(net, Mode::train);
  CHECK(trained.size() == 17);
  for (const Shape& shape : trained) CHECK(shape == Shape{2, 1, 1, 1});
  CHECK(dropouts(net, Mode::inference).empty());
  ConvNext whole(photos(64), {.stochastic_depth = 0});
  CHECK(dropouts(whole, Mode::train).empty());
}

}  // namespace plexaura::testing::convnext_test
