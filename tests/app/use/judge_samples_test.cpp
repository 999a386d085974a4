#include "app/use/judge_samples.h"

#include <cmath>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "training/data/tensor_dataset.h"

namespace plexaura::testing::judge_samples_test {

TEST_CASE("samples are judged by their own loss, and the worst come first") {
  const Config config = Config::parse("model: {name: mlp, hidden: []}\n", "x.yaml");
  const auto model = make_model(config, Shape{1}, 2);
  const auto backend = open_backend("cpu");
  ParameterStore store = make_store(*model, DType::float32, 1);
  store.write("fc1.weight", Tensor::of<float>({2, 1}, {-1, 1}));  // the outputs are -x and x
  const auto data = tensor_dataset({{"samples", Tensor::of<float>({4, 1}, {1, -1, 3, 0.5F})},
                                    {"labels", Tensor::of<std::int64_t>({4}, {1, 1, 0, 1})}});
  REQUIRE(can_judge(*data, *model));
  const Judgement found = judge_samples(*data, *model, store, *backend, 10, 2);
  CHECK(found.samples == 4);
  CHECK(found.unreadable == 0);
  CHECK(found.confusion == std::vector<std::int64_t>{0, 1, 1, 2});
  REQUIRE(found.worst.size() == 2);
  CHECK(found.worst[0].index == 2);
  CHECK(found.worst[0].label == 0);
  CHECK(found.worst[0].predicted == 1);
  CHECK(found.worst[0].loss == doctest::Approx(6 + std::log1p(std::exp(-6.0))));
  CHECK(found.worst[0].probability == doctest::Approx(1 / (1 + std::exp(-6.0))));
  CHECK(found.worst[1].index == 1);
  CHECK(found.worst[1].predicted == 0);
  CHECK(judge_samples(*data, *model, store, *backend, 3, 2).samples == 3);
  // Mixed samples have more fields, which are of no interest.
  const auto mixed = tensor_dataset({{"samples", Tensor::of<float>({2, 1}, {1, 3})},
                                     {"labels", Tensor::of<std::int64_t>({2}, {1, 0})},
                                     {"partner_labels", Tensor::of<std::int64_t>({2}, {0, 0})},
                                     {"share", Tensor::of<float>({2}, {1, 1})}});
  REQUIRE(can_judge(*mixed, *model));
  CHECK(judge_samples(*mixed, *model, store, *backend, 10, 2).confusion ==
        std::vector<std::int64_t>{0, 1, 0, 1});
}

TEST_CASE("samples without one class each are not judged") {
  const Config config = Config::parse("model: {name: mlp, hidden: []}\n", "x.yaml");
  const auto model = make_model(config, Shape{1}, 2);
  const auto targets = tensor_dataset(
      {{"samples", Tensor::of<float>({1, 1}, {1})}, {"targets", Tensor::of<float>({1, 2}, {1, 2})}});
  CHECK_FALSE(can_judge(*targets, *model));
}

}  // namespace plexaura::testing::judge_samples_test
