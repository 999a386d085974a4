#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "core/compile/compile.h"
#include "core/loops/denormals.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/unary.h"
#include "core/vm/vm.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::convolution_plan_test {

namespace {

constexpr double bound = 2e-6;  // that of convolution_test.cpp

struct Case {
  Shape x;
  std::int64_t outputs;
  std::int64_t kernel;
  Conv2dOptions options;
};

// Each has a kernel of its own in oneDNN: of whole windows, of single pixels, for rows of few channels, for groups.
const std::vector<Case> cases{
    {{2, 32, 9, 9}, 32, 3, {.padding = {1, 1}}},
    {{1, 64, 7, 7}, 48, 1, {}},
    {{2, 32, 8, 8}, 16, 1, {.stride = {2, 2}}},
    {{2, 3, 33, 33}, 64, 7, {.stride = {2, 2}, .padding = {3, 3}}},
    {{2, 17, 8, 8}, 19, 3, {}},
    {{2, 12, 6, 6}, 18, 3, {.padding = {1, 1}, .groups = 3}},
    {{2, 16, 6, 6}, 16, 3, {.padding = {1, 1}, .groups = 16}},
};

Node conv(Graph& graph, DType dtype, const Case& of) {
  return conv2d(graph.input("x", {dtype, of.x}),
                graph.input("w", {dtype, {of.outputs, of.x[1] / of.options.groups, of.kernel, of.kernel}}),
                graph.input("b", {dtype, {of.outputs}}), of.options);
}

Node with_relu(Graph& graph, DType dtype, const Case& of) { return relu(conv(graph, dtype, of)); }

Node with_sum(Graph& graph, DType dtype, const Case& of) {
  const Node y = conv(graph, dtype, of);
  return relu(graph.input("addend", {dtype, y.shape()}) + y);
}

// Runs relu(conv2d + bias) of one pixel and 32 channels, whose weights are 1 on the diagonal.
std::vector<double> relu_of(const std::vector<float>& x, const std::vector<float>& bias) {
  constexpr std::int64_t channels = 32;
  const auto backend = make_cpu_backend();
  Graph graph(Mode::inference);
  Tensor weights(TensorType{DType::float32, {channels, channels, 1, 1}});
  for (std::int64_t i = 0; i < channels; ++i)
    weights.as<float>()[static_cast<std::size_t>(i * (channels + 1))] = 1;
  const Node y = relu(conv2d(graph.input("x", {DType::float32, {1, channels, 1, 1}}), graph.constant(weights),
                             graph.input("b", {DType::float32, {channels}})));
  const auto padded = [&](std::vector<float> values, Shape shape) {
    values.resize(static_cast<std::size_t>(channels));
    return Tensor::of<float>(std::move(shape), values);
  };
  VM vm(compile(graph, std::vector<ProgramOutput>{{.node = y}}, *backend), *backend);
  CHECK((vm.program().to_text().find("conv2d+relu") != std::string::npos) == has_onednn());
  vm.run({{"x", padded(x, {1, channels, 1, 1})}, {"b", padded(bias, {channels})}}, StepBlock{});
  return vm.output().to_doubles();
}

}  // namespace

TEST_CASE("in inference one kernel computes a convolution, an addition and ReLU, and agrees with three") {
  for (const Case& of : cases) {
    CAPTURE(to_string(of.x));
    for (const auto& [build, kind] :
         {std::pair(&with_relu, "conv2d+relu"), std::pair(&with_sum, "conv2d+add+relu")}) {
      const auto nodes = [&](Graph& graph, DType dtype) { return std::vector{build(graph, dtype, of)}; };
      const Agreement result = agreement(nodes, {.mode = Mode::inference});
      CAPTURE(result.program);
      CHECK(result.worst() < bound);
      if (of.options.groups == 1) CHECK(result.uses(kind) == has_onednn());  // the library may lack others
      CHECK(!agreement(nodes).uses(kind));
    }
  }
}

TEST_CASE("a convolution whose sum another node reads keeps a ReLU of its own") {
  const auto nodes = [&](Graph& graph, DType dtype) {
    const Node y = conv(graph, dtype, cases[0]);
    return std::vector{relu(y), y};
  };
  const Agreement result = agreement(nodes, {.mode = Mode::inference});
  CHECK(result.worst() < bound);
  CHECK(!result.uses("conv2d+relu"));
}

TEST_CASE("NaN in an input, a weight or an addend goes through every kernel with ReLU") {
  for (Case of : cases) {
    of.options.padding = {0, 0};  // kernels need not multiply padding by a weight that is NaN
    CAPTURE(to_string(of.x));
    for (const std::string name : {"x", "w", "b", "addend"}) {
      CAPTURE(name);
      const auto nodes = [&](Graph& graph, DType dtype) {
        // log() returns NaN where its operand is below 0. Agreement requires NaN in the same places.
        const auto input = [&](const std::string& own, Shape shape) {
          const Node value = graph.input(own, {dtype, std::move(shape)});
          return own == name ? log(value + 0.9) : value;
        };
        const Node y = conv2d(input("x", of.x),
                              input("w", {of.outputs, of.x[1] / of.options.groups, of.kernel, of.kernel}),
                              input("b", {of.outputs}), of.options);
        return std::vector{relu(name == "addend" ? y + input("addend", y.shape()) : y)};
      };
      const Agreement result = agreement(nodes, {.mode = Mode::inference});
      CHECK(result.worst() < bound);
      if (of.options.groups == 1) CHECK(result.uses("+relu)") == has_onednn());
    }
  }
}

TEST_CASE(
    "a kernel with ReLU returns 0 for the largest negative number, and keeps NaN in any thread's setting") {
  constexpr float largest = std::numeric_limits<float>::max();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Denormals setting : {Denormals::kept, Denormals::flushed}) {
    const DenormalScope scope(setting);
    const std::vector<double> y =
        relu_of({1, -1, -0.5F, 2, 0, -2}, {1.5F, -largest / 2, nan, infinity, largest, 2});
    CHECK(y[0] == 2.5);
    CHECK(y[1] == 0);
    CHECK_FALSE(std::signbit(y[1]));
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == std::numeric_limits<double>::infinity());
    CHECK(y[4] == static_cast<double>(largest));
    CHECK(y[5] == 0);
    CHECK(std::ranges::all_of(y.begin() + 6, y.end(), [](double value) { return value == 0; }));
  }
}

}  // namespace plexaura::testing::convolution_plan_test
