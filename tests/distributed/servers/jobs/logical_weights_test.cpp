#include "distributed/servers/jobs/logical_weights.h"

#include <doctest/doctest.h>
#include <vector>

#include "distributed/servers/ranks/shared_weights.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::logical_weights_test {

namespace {

std::vector<ParameterSpec> specs() {
  const auto of = [](const char* name, std::int64_t elements, ParameterRole role) {
    return ParameterSpec{name, {DType::float32, {elements}}, role, Initialiser::zeros()};
  };
  return {of("frozen", 1, ParameterRole::frozen), of("running", 2, ParameterRole::buffer),
          of("weight", 3, ParameterRole::trainable), of("bias", 1, ParameterRole::trainable)};
}

}  // namespace

TEST_CASE("logical weights: trainables, buffers and frozen ones follow each other in the order of names") {
  ParameterStore store(specs());
  store.write("weight", Tensor::of<float>({3}, {2, 3, 4}));
  store.write("bias", Tensor::of<float>({1}, {1}));
  store.write("running", Tensor::of<float>({2}, {5, 6}));
  store.write("frozen", Tensor::of<float>({1}, {7}));
  const LogicalWeights form(store.specs());
  CHECK(form.bytes() == 7 * sizeof(float));
  CHECK(form.shared_bytes() == 6 * sizeof(float));
  CHECK(form.trainables() == 4);
  std::vector<float> all(7);
  const auto read = [&](std::string_view name) { return store.read(name); };
  form.read(read, std::as_writable_bytes(std::span(all)));
  CHECK(all == std::vector<float>{1, 2, 3, 4, 5, 6, 7});

  for (float& number : all) number *= 10;
  form.write(std::as_bytes(std::span(all)).first(form.shared_bytes()),
             [&](std::string_view name, const Tensor& value) { store.write(name, value); });
  CHECK(store.read("bias") == Tensor::of<float>({1}, {10}));
  CHECK(store.read("running") == Tensor::of<float>({2}, {50, 60}));
  CHECK(store.read("frozen") == Tensor::of<float>({1}, {7}));
}

TEST_CASE("logical weights: the facts of each parameter, and what no server takes") {
  const auto facts = LogicalWeights(specs()).facts();
  CHECK(facts.size() == 4);
  CHECK(facts.at("parameter weight") == "float32[3], trained");
  CHECK(facts.at("parameter running") == "float32[2], a buffer");
  CHECK(facts.at("parameter frozen") == "float32[1], frozen");
  const std::vector<ParameterSpec> half{{"w", {DType::float16, {1}}, ParameterRole::trainable, {}}};
  CHECK(user_error([&] { LogicalWeights{half}; }) ==
        "ranks exchange weights of float64 or float32, not float16: cast them first");
  CHECK(user_error([&] { LogicalWeights{std::vector<ParameterSpec>()}; }) ==
        "the model has no parameters, so a server has no weights to exchange; train it alone");
}

}  // namespace plexaura::testing::logical_weights_test
