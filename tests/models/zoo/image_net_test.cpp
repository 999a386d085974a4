#include "models/zoo/image_net.h"

#include <doctest/doctest.h>

#include "models/zoo/model.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::image_net_test {

TEST_CASE("nets for images refuse other samples, with line and column") {
  for (const std::string name : {"convnext", "mobilenet_v2", "resnet", "unet", "vgg"}) {
    const std::string depth = name == "resnet" ? ", depth: 18" : "";
    const Config config = Config::parse("model: {name: " + name + depth + "}", "x.yaml");
    CHECK(user_error([&] { make_model(config, Shape{4}, 3); }) ==
          "x.yaml:1:15: model.name is " + name + ", which takes images [C, H, W], and the samples are [4]");
  }
  CHECK(user_error([] { image_channels(Shape{4}, "vgg"); }) ==
        "a model vgg takes images [C, H, W], and the samples are [4]");
}

}  // namespace plexaura::testing::image_net_test
