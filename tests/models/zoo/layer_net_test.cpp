#include "models/zoo/layer_net.h"

#include <doctest/doctest.h>

namespace plexaura::testing::layer_net_test {

namespace {

bool is_incremental(const std::string& keys, const Shape& sample) {
  const Config config = Config::parse("model: {name: convnet, " + keys + "}\n", "x.yaml");
  const auto model = make_model(config.section("model"), sample, 3, {});
  return model->incremental(1) != nullptr;
}

}  // namespace

TEST_CASE("only a language model is computed position by position") {
  CHECK(is_incremental("task: language_model, layers: [{type: embedding, units: 4}, {type: linear}]", {8}));
  CHECK_FALSE(is_incremental("layers: [{type: standardise}, {type: tanh}, {type: linear}]", {8}));
}

}  // namespace plexaura::testing::layer_net_test
