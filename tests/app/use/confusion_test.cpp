#include "app/use/confusion.h"

#include <array>
#include <doctest/doctest.h>

#include "backends/registry.h"
#include "training/data/loader.h"
#include "training/data/tensor_dataset.h"

namespace plexaura::testing::confusion_test {

TEST_CASE("confusions are counted over all samples, exactly, also in mixed precision") {
  const Config config = Config::parse("model: {name: mlp, hidden: []}\n", "x.yaml");
  const auto model = make_model(config, Shape{1}, 2);
  // The second class is predicted for samples above 0. 300 is no number of bfloat16.
  constexpr std::int64_t many = 301;
  Tensor samples(TensorType{DType::float32, {many + 3, 1}});
  Tensor labels(TensorType{DType::int64, {many + 3}});
  for (std::int64_t i = 0; i < many + 3; ++i)
    samples.as<float>()[static_cast<std::size_t>(i)] = i < many ? 1.0F : -1.0F;
  for (std::int64_t i = 0; i < many + 1; ++i) labels.as<std::int64_t>()[static_cast<std::size_t>(i)] = 1;
  const auto data = tensor_dataset({{"samples", samples}, {"labels", labels}});
  for (const ArenaTypes& types : {ArenaTypes::all(DType::float32), ArenaTypes::mixed(DType::bfloat16)}) {
    const auto backend = open_backend("cpu");
    ParameterStore store = make_store(*model, DType::float32, 1);
    store.set_types(types);
    store.write("fc1.weight", Tensor::of<float>({2, 1}, {-1, 1}));
    SingleProcess alone;
    Evaluator evaluator(builder_with_confusion(*model), data->fields(), store, *backend, alone);
    const Validation found = validate(evaluator, data, alone, {.batch_size = many + 3});
    CHECK(found.totals == std::vector<double>{2, 0, 1, many});
    CHECK(value_of("accuracy", found.metrics) == doctest::Approx(303.0 / 304));
  }
}

TEST_CASE("the table of confusions has a row for each class and a column for each prediction") {
  const std::array<double, 4> counts{10, 0, 2, 12345};
  CHECK(confusion_text(counts, {"a", "a dog"}) ==
        "true \\ predicted   a  a dog\n"
        "a                 10      0\n"
        "a dog              2  12345\n");
}

}  // namespace plexaura::testing::confusion_test
