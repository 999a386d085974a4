#include "core/inference/fold_batch_norms.h"

#include <cmath>
#include <doctest/doctest.h>
#include <functional>

#include "core/compile/compile.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv1d.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv3d.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/support/backend.h"

namespace plexaura::testing::fold_batch_norms_test {

namespace {

constexpr std::int64_t channels = 6;

std::size_t count_norms(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->name() == "normalise") ++count;
  return count;
}

Tensor filled(const TensorType& type, std::int64_t seed, double lowest = -1) {
  Tensor tensor(TensorType{DType::float32, type.shape});
  float* const elements = tensor.as<float>().data();
  for (std::int64_t i = 0; i < type.shape.elements(); ++i)
    elements[i] = static_cast<float>(lowest + static_cast<double>((i * 7919 + seed * 104729) % 1000) / 500);
  return tensor.cast(type.dtype);
}

// A graph of inference with the parameters that it reads.
struct Net {
  explicit Net(DType the_dtype = DType::float32) : dtype(the_dtype) {}

  Node input(Shape shape) { return graph.input("x", {dtype, std::move(shape)}); }
  Node parameter(const std::string& name, Shape shape, double lowest = -1) {
    const TensorType type{dtype, std::move(shape)};
    specs.push_back({.name = name, .type = type, .initialiser = {}});
    values.emplace_back(name, filled(type, static_cast<std::int64_t>(values.size()), lowest));
    return graph.parameter(name, type);
  }
  Node norm(const Node& x) {
    return batch_norm_inference(x, parameter("scale", {channels}), parameter("shift", {channels}),
                                parameter("mean", {channels}), parameter("variance", {channels}, 0.25));
  }

  Graph graph{Mode::inference};
  DType dtype;
  std::vector<ParameterSpec> specs;
  std::vector<std::pair<std::string, Tensor>> values;
};

PassGraph folded(const Net& net, const Node& y) {
  return fold_batch_norms(net.graph, std::vector{y.value()});
}

Tensor run(const Net& net, const Graph& graph, Value root, const Tensor& x) {
  ParameterStore store{net.specs};
  for (const auto& [name, value] : net.values) store.write(name, value);
  const std::vector<ProgramOutput> outputs{{.node = Node(const_cast<Graph&>(graph), root)}};
  VM vm(compile(graph, outputs, test_backend(), {.placement = &store.placement()}), test_backend(),
        {.store = &store});
  vm.run({{"x", x}}, StepBlock{});
  return vm.output();
}

// Checks that no batch norm is left, and that outputs are equal except for rounding.
void check_folds(const Net& net, const Node& y, const Shape& sample) {
  const PassGraph result = folded(net, y);
  CHECK(count_norms(*result.graph) == 0);
  const Tensor x = filled({net.dtype, sample}, 5);
  const auto expected = run(net, net.graph, y.value(), x).to_doubles();
  const auto actual = run(net, *result.graph, result.roots[0], x).to_doubles();
  REQUIRE(actual.size() == expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  const double tolerance = net.dtype == DType::float64 ? 1e-13 : 1e-5;
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(std::abs(actual[i] - expected[i]) <= tolerance * largest);
}

}  // namespace

TEST_CASE("batch norms after convolutions and products become a part of the weights") {
  for (const DType dtype : {DType::float32, DType::float64}) {
    SUBCASE("conv2d in groups, without a bias") {
      Net net(dtype);
      check_folds(net,
                  relu(net.norm(conv2d(net.input({2, 4, 5, 5}), net.parameter("w", {channels, 2, 3, 3}),
                                       {.padding = {1, 1}, .groups = 2}))),
                  {2, 4, 5, 5});
    }
    SUBCASE("conv2d with a bias, read by two nodes after the batch norm") {
      Net net(dtype);
      const Node y = net.norm(conv2d(net.input({1, 3, 4, 4}), net.parameter("w", {channels, 3, 1, 1}),
                                     net.parameter("b", {channels})));
      check_folds(net, y + relu(y), {1, 3, 4, 4});
    }
    SUBCASE("conv1d, whose result is reshaped") {
      Net net(dtype);
      check_folds(net, net.norm(conv1d(net.input({2, 3, 7}), net.parameter("w", {channels, 3, 3}))),
                  {2, 3, 7});
    }
    SUBCASE("conv3d, which a layer reshapes to four axes") {
      Net net(dtype);
      const Node y = conv3d(net.input({2, 2, 3, 3, 3}), net.parameter("w", {channels, 2, 2, 2, 2}),
                            net.parameter("b", {channels}));
      check_folds(net, net.norm(reshape(y, {2, channels, 2, 4})), {2, 2, 3, 3, 3});
    }
    SUBCASE("matmul, transposed and not, with a bias on either side") {
      Net net(dtype);
      const Node x = net.input({3, 4});
      check_folds(net,
                  net.norm(net.parameter("b", {channels}) + matmul(x, net.parameter("w", {4, channels}))),
                  {3, 4});
      Net other(dtype);
      check_folds(
          other,
          other.norm(matmul(other.input({3, 4}), other.parameter("w", {channels, 4}), {.transpose_b = true})),
          {3, 4});
    }
  }
}

TEST_CASE(
    "a batch norm stays if its weights would have to be computed in each run, or another node reads x") {
  const Shape pixels{1, 3, 4, 4};
  const auto conv = [&](Net& net, const Node& x) {
    return conv2d(x, net.parameter("w", {channels, 3, 1, 1}));
  };
  SUBCASE("another reader of the product") {
    Net net;
    const Node product = conv(net, net.input(pixels));
    CHECK(count_norms(*folded(net, net.norm(product) + product).graph) == 1);
  }
  SUBCASE("the product is an output") {
    Net net;
    const Node product = conv(net, net.input(pixels));
    const std::vector<Value> roots{product.value(), net.norm(product).value()};
    CHECK(count_norms(*fold_batch_norms(net.graph, roots).graph) == 1);
  }
  SUBCASE("moments of the batch") {
    Net net;
    const Node product = conv(net, net.input(pixels));
    const auto [y, mean, variance] =
        batch_norm(product, net.parameter("scale", {channels}), net.parameter("shift", {channels}));
    CHECK(count_norms(*folded(net, y).graph) == 1);
  }
  SUBCASE("weights that depend on the input") {
    Net net;
    const Node weights = net.graph.input("weights", {DType::float32, {channels, 3, 1, 1}});
    CHECK(count_norms(*folded(net, net.norm(conv2d(net.input(pixels), weights))).graph) == 1);
  }
  SUBCASE("a graph with updates") {
    Net net;
    const Node y = net.norm(conv(net, net.input(pixels)));
    const Node counter = net.graph.buffer("counter", {DType::float32, {}});
    net.graph.update(counter, counter + 1);
    CHECK(count_norms(*folded(net, y).graph) == 1);
    CHECK(folded(net, y).graph->updates().size() == 1);
  }
}

TEST_CASE("an input or a weight that is NaN makes the same outputs NaN after folding") {
  Net net;
  const Node y = net.norm(conv2d(net.input({1, 2, 2, 2}), net.parameter("w", {channels, 2, 1, 1})));
  const PassGraph result = folded(net, y);
  Tensor x = filled({DType::float32, {1, 2, 2, 2}}, 5);
  x.as<float>()[1] = NAN;
  net.values[0].second.as<float>()[2 * 3] = NAN;  // the weights of channel 3
  const auto expected = run(net, net.graph, y.value(), x).to_doubles();
  const auto actual = run(net, *result.graph, result.roots[0], x).to_doubles();
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CHECK(std::isnan(actual[i]) == std::isnan(expected[i]));
    CHECK(std::isnan(actual[i]) == (i % 4 == 1 || i / 4 == 3));
  }
}

}  // namespace plexaura::testing::fold_batch_norms_test
