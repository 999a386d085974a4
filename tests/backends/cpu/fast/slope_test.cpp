#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "core/autodiff/gradients.h"
#include "core/graph/uses.h"
#include "core/ops/activations.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::slope_test {

namespace {

constexpr double bound = 1e-6;

struct Slope {
  std::string kind;
  Node (*op)(Operand);
};
const std::vector<Slope> slopes{{"gelu grad", [](Operand x) { return gelu(x); }},
                                {"gelu_tanh grad", [](Operand x) { return gelu(x, {.tanh = true}); }},
                                {"silu grad", silu},
                                {"hard_swish grad", hard_swish}};

}  // namespace

TEST_CASE("the gradient of an activation is one loop, which agrees with the portable kernels in double") {
  for (const Slope& slope : slopes)
    for (const double most : {0.01, 1.0, 6.0, 60.0})
      for (const Shape& shape : {Shape{13001}, Shape{9, 700}}) {
        CAPTURE(slope.kind);
        CAPTURE(most);
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              const Node x = graph.input("x", {dtype, shape});
              const Node y = slope.op(x);
              std::vector<Node> found = gradients(sum(y * graph.input("g", {dtype, shape})), {x});
              found.push_back(y);
              return found;
            },
            {.low = -most, .high = most});
        CAPTURE(result.program);
        CHECK(result.uses("(" + slope.kind + ") [fast]"));
        CHECK(result.worst() < bound);
      }
}

TEST_CASE(
    "the gradient of an activation of doubles is one loop, unless its functions are the standard library's") {
  for (const Slope& slope : slopes) {
    CAPTURE(slope.kind);
    const Agreement result = agreement(
        [&](Graph& graph, DType dtype) {
          const Node x = graph.input("x", {dtype, {9, 700}});
          return vjp(std::vector{slope.op(x)}, std::vector{graph.input("g", x.type())}, std::vector{x});
        },
        {.low = -6, .high = 6, .dtype = DType::float64});
    CAPTURE(result.program);
    CHECK(result.uses("(" + slope.kind + ") [fast]") == (slope.kind != "gelu grad"));
    CHECK(result.worst() < bound_of_doubles);
  }
}

TEST_CASE(
    "the gradient of an activation between convolutions reads blocks, and its second gradient is right") {
  for (const Slope& slope : slopes)
    for (const std::int64_t channels : {3, 16, 17}) {
      CAPTURE(slope.kind);
      const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
        const Node x = graph.input("x", {dtype, {2, channels, 6, 6}});
        const Node first = graph.input("first", {dtype, {channels, channels, 3, 3}});
        const Node second = graph.input("second", {dtype, {4, channels, 3, 3}});
        const Node y = conv2d(slope.op(conv2d(x, first)), second);
        const std::vector<Node> grads = gradients(sum(square(y)), {x, first, second});
        std::vector<Node> found = gradients(sum(square(slope.op(x))), {x});
        found.push_back(gradients(sum(square(found[0])), {x})[0]);
        found.insert(found.end(), grads.begin(), grads.end());
        return found;
      });
      CAPTURE(result.program);
      CHECK(result.uses("(" + slope.kind + ") [fast]"));
      CHECK(result.worst() < 4e-6);
    }
}

TEST_CASE("the gradient of an activation is computed in blocks, whose padding stays zero") {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Slope& slope : slopes)
    for (const std::int64_t channels : {16, 17}) {
      CAPTURE(slope.kind);
      CAPTURE(channels);
      Graph graph;
      const Node x = graph.input("x", {DType::float32, {2, channels, 3, 3}});
      const Node grad = graph.input("grad", x.type());
      const Node result = vjp(std::vector{slope.op(x)}, std::vector{grad}, std::vector{x})[0];
      const std::vector<Tensor> feeds{drawn(x.type(), "x"), drawn(x.type(), "grad")};
      const std::vector<Region> regions =
          fast->regions(graph, result.id(), Uses(graph, std::vector{result.value()}));
      const auto found = std::ranges::find(regions, slope.kind, &Region::kind);
      REQUIRE(found != regions.end());
      std::vector<Tensor> operands = feeds;
      for (std::size_t i = operands.size(); i < found->inputs.size(); ++i)
        operands.emplace_back(graph.type(found->inputs[i]));  // constants, which the loop contains
      const Layout blocks = blocked_channels(16);
      RegionRun run(*fast, graph, *found, operands, {.given = {blocks, blocks}});
      CHECK(run.candidate().inputs[0] == blocks);
      CHECK(run.candidate().outputs[0] == blocks);
      run.output().spoil();
      run.launch();
      const std::vector<double> own = run.output().read().to_doubles();
      const std::vector<double> expected = Runner(graph, {result}, *portable)(feeds)[0].to_doubles();
      for (std::size_t i = 0; i < own.size(); ++i) CHECK(std::abs(own[i] - expected[i]) < bound);
      const std::vector<std::byte> bytes = run.output().read_bytes();
      const auto* elements = reinterpret_cast<const float*>(bytes.data());
      const auto places = static_cast<std::int64_t>(bytes.size() / sizeof(float));
      CHECK(std::count(elements, elements + places, 0.F) >= places - result.shape().elements());
    }
}

TEST_CASE("the gradients of activations have the limits of the portable kernels") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0,           -0.F, 1e-40F, -1e-40F,  3,         -3, 3.0000002F,
                                  -3.0000002F, 50,   -50,    infinity, -infinity, NAN};
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Slope& slope : slopes) {
    CAPTURE(slope.kind);
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {static_cast<std::int64_t>(values.size())}});
    const Node grad = graph.input("grad", x.type());
    const std::vector<Node> result = vjp(std::vector{slope.op(x)}, std::vector{grad}, std::vector{x});
    const std::vector<Tensor> feeds{Tensor::of<float>(x.shape(), values),
                                    Tensor::of<float>(x.shape(), std::vector<float>(values.size(), 0.75F))};
    const Tensor found = Runner(graph, result, *fast)(feeds)[0];
    const Tensor wanted = Runner(graph, result, *portable)(feeds)[0];
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float own = found.as<float>()[i];
      const float expected = wanted.as<float>()[i];
      CAPTURE(values[i]);
      CHECK(std::isnan(own) == std::isnan(expected));
      if (!std::isnan(expected)) CHECK(std::abs(own - expected) <= 5e-7F * std::max(1.F, std::abs(expected)));
    }
  }
}

}  // namespace plexaura::testing::slope_test
