#include "models/layers/attention.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "models/layers/layer.h"
#include "tests/models/plain_layers.h"
#include "tests/support/error_text.h"
#include "tests/support/run_graph.h"

namespace plexaura::testing::attention_test {

namespace {

constexpr std::int64_t samples = 2, queries = 3, keys = 4, width = 6, heads = 2;

// An attention with patterns as parameters, and its inputs.
struct Example {
  layers::MultiheadAttention attention{width, heads};
  ParameterStore store = make_store(attention, DType::float64);
  Tensor query = pattern({samples, queries, width}, 7);
  Tensor memory = pattern({samples, keys, width}, 5, 1);

  Example() { fill_with_patterns(store); }

  using Permits = std::function<bool(std::size_t sample, std::size_t query, std::size_t key)>;

  // Compares `found`, of queries and memory, with plain loops.
  void check(const Tensor& found, const Tensor& attended, const Permits& permits) const {
    std::vector<double> expected;
    for (std::size_t n = 0; n < samples; ++n) {
      const PlainRows rows =
          PlainLayers(store).attention(sample_of(query, n), sample_of(attended, n), "", heads,
                                       [&](std::size_t l, std::size_t s) { return permits(n, l, s); });
      expected.insert(expected.end(), rows.values.begin(), rows.values.end());
    }
    check_close(found, expected);
  }
};

// True for the keys of sample 0 and the first two keys of sample 1.
Tensor real_keys(std::int64_t count) {
  Tensor real(TensorType{DType::boolean, {samples, count}});
  for (std::int64_t i = 0; i < samples * count; ++i)
    real.as<bool>()[static_cast<std::size_t>(i)] = i < count + 2;
  return real;
}
bool is_real(std::size_t sample, std::size_t key) { return sample == 0 || key < 2; }

}  // namespace

TEST_CASE("attention has PyTorch's parameters") {
  layers::MultiheadAttention attention(width, heads);
  const std::vector<ParameterSpec> specs = specs_of(attention, DType::float32);
  REQUIRE(specs.size() == 4);
  CHECK(specs[0].name == "in_proj_weight");
  CHECK(specs[0].type.shape == Shape{3 * width, width});
  CHECK(specs[1].name == "in_proj_bias");
  CHECK(specs[2].name == "out_proj.weight");
  CHECK(specs[3].name == "out_proj.bias");
  layers::MultiheadAttention without(width, heads, {.bias = false});
  CHECK(specs_of(without, DType::float32).size() == 2);
}

TEST_CASE("attention to oneself computes what its formula says, plainly and causally") {
  Example example;
  Graph graph;
  const Node x = graph.input("x", example.query.type());
  const auto results =
      run_graph(graph, example.store, {example.attention(x), example.attention(x, {.is_causal = true})},
                {{"x", example.query}});
  example.check(results[0], example.query, [](auto...) { return true; });
  example.check(results[1], example.query, [](auto, auto l, auto s) { return s <= l; });
}

TEST_CASE("attention to a memory computes what its formula says, with each mask and their combinations") {
  Example example;
  Graph graph;
  const Node query = graph.input("query", example.query.type());
  const Node memory = graph.input("memory", example.memory.type());
  const Node real = graph.input("real", {DType::boolean, {samples, keys}});
  const Node mask = graph.input("mask", {DType::boolean, {queries, keys}});
  const Node added = graph.input("added", {DType::float64, {queries, keys}});
  const auto attend = [&](const layers::AttentionMasks& masks) {
    return example.attention(query, memory, memory, masks);
  };
  Tensor odd(TensorType{DType::boolean, {queries, keys}});
  Tensor lowest(TensorType{DType::float64, {queries, keys}});
  for (std::size_t i = 0; i < queries * keys; ++i) {
    odd.as<bool>()[i] = i % keys == 0 || i % 3 != 1;
    lowest.as<double>()[i] = odd.as<bool>()[i] ? 0 : -1e300;
  }
  const auto results =
      run_graph(graph, example.store,
                {attend({}), attend({.keys = real}), attend({.mask = mask}), attend({.mask = added}),
                 attend({.mask = added, .keys = real, .is_causal = true}),
                 attend({.mask = mask, .keys = real, .is_causal = true})},
                {{"query", example.query},
                 {"memory", example.memory},
                 {"real", real_keys(keys)},
                 {"mask", odd},
                 {"added", lowest}});
  const auto is_odd = [](std::size_t l, std::size_t s) { return s == 0 || (l * keys + s) % 3 != 1; };
  const Example::Permits masked = [&](auto, auto l, auto s) { return is_odd(l, s); };
  const Example::Permits all = [&](auto n, auto l, auto s) {
    return is_real(n, s) && is_odd(l, s) && s <= l;
  };
  example.check(results[0], example.memory, [](auto...) { return true; });
  example.check(results[1], example.memory, [](auto n, auto, auto s) { return is_real(n, s); });
  example.check(results[2], example.memory, masked);
  example.check(results[3], example.memory, masked);
  example.check(results[4], example.memory, all);
  example.check(results[5], example.memory, all);
}

TEST_CASE("every parameter of an attention has a gradient") {
  Example example;
  Graph graph;
  const Node y = example.attention(graph.input("x", example.query.type()), {.is_causal = true});
  std::vector<Node> parameters;
  for (const ParameterSpec& spec : example.store.specs())
    parameters.push_back(graph.parameter(spec.name, spec.type));
  CHECK(gradients(sum(y), parameters).size() == 4);
}

TEST_CASE("attention refuses heads and inputs that do not fit") {
  CHECK(user_error([] { layers::MultiheadAttention(6, 4); }) ==
        "attention over 6 features cannot have 4 heads; the heads must divide the features evenly");
  layers::MultiheadAttention attention(width, heads);
  specs_of(attention, DType::float32);
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3, width}});
  const Node narrow = graph.input("narrow", {DType::float32, {2, 3, 5}});
  const std::string error = user_error([&] { attention(x, narrow, x); });
  CAPTURE(error);
  CHECK(error.ends_with(": attention is given the key float32[2,3,5]; it takes [N, positions, 6]"));
  CHECK(error.find("attention_test.cpp") != std::string::npos);
  const Node transposed = graph.input("transposed", {DType::boolean, {3, 2}});
  CHECK(user_error([&] { attention(x, {.keys = transposed}); })
            .ends_with(
                ": attention is given the mask of keys bool[3,2]; it takes bool[2,3], a value for each key"));
}

}  // namespace plexaura::testing::attention_test
