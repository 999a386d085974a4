#include "models/zoo/mobilenet_v2.h"

#include <doctest/doctest.h>

#include "tests/models/zoo/specs.h"

namespace plexaura::testing::mobilenet_v2_test {

namespace {

ModelInfo photos() { return {{3, 224, 224}, 1000}; }

std::int64_t parameters(double width) {
  MobileNetV2 net(photos(), {.width = width});
  return trainable_elements(net);
}

}  // namespace

TEST_CASE("MobileNetV2 has torchvision's numbers of parameters") {
  CHECK(parameters(1) == 3'504'872);
  CHECK(parameters(0.5) == 1'968'680);
  CHECK(parameters(1.4) == 6'108'776);
}

TEST_CASE("MobileNetV2's names and shapes are torchvision's") {
  MobileNetV2 net(photos(), {});
  const auto specs = specs_of(net, DType::float32);
  CHECK(specs.size() == 158 + 2 * 52);
  check_shapes(specs, {{"features.0.0.weight", {32, 3, 3, 3}},
                       {"features.0.1.running_mean", {32}},
                       {"features.1.conv.0.0.weight", {32, 1, 3, 3}},
                       {"features.1.conv.1.weight", {16, 32, 1, 1}},
                       {"features.1.conv.2.bias", {16}},
                       {"features.2.conv.0.0.weight", {96, 16, 1, 1}},
                       {"features.2.conv.1.0.weight", {96, 1, 3, 3}},
                       {"features.17.conv.2.weight", {320, 960, 1, 1}},
                       {"features.17.conv.3.running_var", {320}},
                       {"features.18.0.weight", {1280, 320, 1, 1}},
                       {"classifier.1.weight", {1000, 1280}}});
}

TEST_CASE("MobileNetV2 adds the input of a block where its shape stays, and divides the image by 32") {
  MobileNetV2 net(photos(), {});
  specs_of(net, DType::float32);
  Graph graph(Mode::inference);
  CHECK(net(graph.input("x", {DType::float32, {2, 3, 224, 224}})).shape() == Shape{2, 1000});
  const std::vector<Shape> convolutions = outputs_of_ops(graph, "conv2d");
  CHECK(convolutions.size() == 52);
  CHECK(convolutions.back() == Shape{2, 1280, 7, 7});
  // Ten blocks, the bias of the last layer, and the additions of epsilon.
  CHECK(outputs_of_ops(graph, "add").size() == 10 + 1 + 52);
}

}  // namespace plexaura::testing::mobilenet_v2_test
