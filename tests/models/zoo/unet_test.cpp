#include "models/zoo/unet.h"

#include <doctest/doctest.h>

#include "tests/models/zoo/specs.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::unet_test {

namespace {

ModelInfo images(const Shape& sample) {
  return {
      .sample_shape = sample, .classes = sample.elements(), .loss = Loss::mse, .task = Task::reconstruction};
}

std::string error_of(const std::string& keys, const Shape& sample) {
  return user_error(
      [&] { make_model(Config::parse("model: {name: unet" + keys + "}", "x.yaml"), sample, 3); });
}

}  // namespace

// The numbers are those of UNet(3, 3, bilinear=False) and UNet(1, 1, bilinear=False).
TEST_CASE("a U-Net has the published number of parameters") {
  UNet colours(images({3, 64, 64}), {});
  CHECK(trainable_elements(colours) == 31'037'763);
  UNet grey(images({1, 64, 64}), {});
  CHECK(trainable_elements(grey) == 31'036'481);
}

TEST_CASE("a U-Net's names and shapes are those of milesial/Pytorch-UNet") {
  UNet net(images({3, 64, 64}), {});
  const auto specs = specs_of(net, DType::float32);
  CHECK(specs.size() == 9 * (2 + 2 * 4) + 4 * 2 + 2);
  check_shapes(specs, {{"inc.double_conv.0.weight", {64, 3, 3, 3}},
                       {"inc.double_conv.4.running_mean", {64}},
                       {"down1.maxpool_conv.1.double_conv.0.weight", {128, 64, 3, 3}},
                       {"down4.maxpool_conv.1.double_conv.3.weight", {1024, 1024, 3, 3}},
                       {"up1.up.weight", {1024, 512, 2, 2}},
                       {"up1.up.bias", {512}},
                       {"up1.conv.double_conv.0.weight", {512, 1024, 3, 3}},
                       {"up4.conv.double_conv.1.bias", {64}},
                       {"outc.conv.weight", {3, 64, 1, 1}},
                       {"outc.conv.bias", {3}}});
}

TEST_CASE("a U-Net returns an image of the shape of its input, and joins levels of the same size") {
  UNet net(images({1, 24, 16}), {.depth = 3, .width = 4});
  specs_of(net, DType::float32);
  Graph graph(Mode::inference);
  CHECK(net(graph.input("x", {DType::float32, {2, 1, 24, 16}})).shape() == Shape{2, 1, 24, 16});
  CHECK(outputs_of_ops(graph, "concat") == std::vector<Shape>{{2, 32, 6, 4}, {2, 16, 12, 8}, {2, 8, 24, 16}});
}

TEST_CASE("a U-Net refuses images that cannot be halved so often, and tasks without images") {
  const std::string images_task = ", task: reconstruction";
  CHECK(
      error_of(images_task, {1, 28, 28}) ==
      "x.yaml:1:1: model.depth is 4, and the images have 28x28 pixels; height and width must be multiples of "
      "2^depth = 16, so give other images, or a depth of at most 2");
  CHECK(error_of(images_task + ", depth: 1", {1, 5, 4})
            .ends_with(
                "model.depth is 1, and the images have 5x4 pixels; height and width must be multiples of "
                "2^depth = 2, so give other images"));
  CHECK(error_of("", {1, 32, 32}) ==
        "x.yaml:1:1: model.task is classification, and model.name is unet, which returns images; set it to "
        "reconstruction or segmentation");
  CHECK(error_of(images_task + ", depth: 9", {1, 32, 32})
            .find("model.depth is '9'; it must be a whole number >= 1 and <= 8") != std::string::npos);
  CHECK(user_error([] {
          UNet(images({1, 28, 28}), {});
        })
            .starts_with("the depth of a model unet is 4, and the "
                         "images have 28x28 pixels; "));
  CHECK(user_error([] {
          UNet(images({1, 32, 32}), {.depth = 0});
        }) == "the depth of a model unet is 0; give one from 1 to 8");
  CHECK(user_error([] {
          UNet(images({1, 32, 32}), {.width = 0});
        }) == "the width of a model unet is 0; give one from 1 to 1024");
  CHECK(user_error([] {
          UNet({{1, 32, 32}, 5}, {});
        }) ==
        "a model unet returns images, and its task is classification; set ModelInfo::task to "
        "Task::reconstruction or Task::segmentation");
}

}  // namespace plexaura::testing::unet_test
