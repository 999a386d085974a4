#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fast/elementwise/elementwise_loops.h"
#include "backends/cpu/fast/math/vector_math.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/element_losses.h"
#include "core/ops/reduce.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::elementwise_test {

namespace {

// Allows one rounding for operations of the processor, and some units in the last place for functions.
constexpr double bound = 4e-7;

using Unary = Node (*)(Operand);
using Binary = Node (*)(Operand, Operand);
const std::vector<Unary> unary_ops{
    neg,
    abs,
    exp,
    sqrt,
    square,
    sigmoid,
    tanh,
    relu,
    softplus,
    erf,
    [](Operand x) { return gelu(x); },
    [](Operand x) { return gelu(x, {.tanh = true}); },
    [](Operand x) { return leaky_relu(x, 0.3); },
    [](Operand x) { return clip(x, 0.25, 0.75); },
};
Node weighted(Operand a, Operand b) { return weighted_sum(a, 0.5, b, -2); }
Node half_huber(Operand a, Operand b) { return huber(a, b, 0.5, Reduction::none); }
const std::vector<Binary> binary_ops{
    add, sub, mul, div, weighted, maximum, minimum, half_huber, sigmoid_cross_entropy};
const std::vector<Binary> comparisons{eq, ne, lt, le, gt, ge};

// Returns the largest error in units in the last place over many values of [low, high).
double largest_ulp_error(std::string_view op, double (*exact)(double), double low, double high) {
  const fast::UnaryLoops* loops = fast::find_unary(op);
  REQUIRE(loops != nullptr);
  const Tensor x = drawn({DType::float32, {200000}}, op, {.low = low, .high = high});
  Tensor y(x.type());
  loops->loop(x.as<float>().data(), y.as<float>().data(), x.elements(), nullptr);
  double largest = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double expected = exact(static_cast<double>(x.as<float>()[static_cast<std::size_t>(i)]));
    const double ulp = std::max(std::ldexp(1.0, std::ilogb(expected) - 23), 1e-38);
    largest = std::max(
        largest, std::abs(static_cast<double>(y.as<float>()[static_cast<std::size_t>(i)]) - expected) / ulp);
  }
  return largest;
}

float value_of(std::string_view op, float x) {
  float y = 0;
  fast::find_unary(op)->loop(&x, &y, 1, nullptr);
  return y;
}

// Halves an interval until it has x with erf(x) = y. Uses 1 - erf, so that it is exact near 1.
double inverse_of_erf(double y) {
  double low = 0;
  double high = 6;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    const bool is_below = y < 0.5 ? std::erf(middle) < y : std::erfc(middle) > 1 - y;
    (is_below ? low : high) = middle;
  }
  return low;
}

// Returns the results of each op for all pairs of these values, and for each value with a single other one.
std::vector<Tensor> of_pairs(Backend& backend, const std::vector<float>& values,
                             const std::vector<Binary>& ops) {
  Graph graph;
  const auto count = static_cast<std::int64_t>(values.size());
  const Node a = graph.input("a", {DType::float32, {count, count}});
  const Node b = graph.input("b", {DType::float32, {count, count}});
  const Node one = graph.input("one", {DType::float32, {1}});
  Tensor firsts(a.type());
  Tensor seconds(a.type());
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < values.size(); ++j) {
      firsts.as<float>()[i * values.size() + j] = values[i];
      seconds.as<float>()[i * values.size() + j] = values[j];
    }
  std::vector<Node> results;
  for (const Binary op : ops) results.insert(results.end(), {op(a, b), op(a, one), op(one, b)});
  return Runner(graph, results, backend)({firsts, seconds, Tensor::of<float>({1}, {0.7F})});
}

// Compares the results of of_pairs() with the portable kernels, for special values and for random ones. A relative error
// of 0 demands equal bits.
void check_pairs(const std::vector<Binary>& ops, double error) {
  std::vector<float> values{0,     -0.F,   1,     -1,       3,         -3,    0.1F, -0.1F,     1e-40F,
                            3e38F, -3e38F, 1e10F, 16777216, 134217728, 1e-5F, NAN,  HUGE_VALF, -HUGE_VALF};
  const Tensor random = drawn({DType::float32, {130}}, "random", {.low = -9, .high = 9});
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const bool is_special : {true, false}) {
    if (!is_special) values.assign(random.as<float>().begin(), random.as<float>().end());
    const std::vector<Tensor> found = of_pairs(*fast, values, ops);
    const std::vector<Tensor> expected = of_pairs(*portable, values, ops);
    for (std::size_t output = 0; output < found.size(); ++output)
      for (std::size_t i = 0; i < static_cast<std::size_t>(found[output].elements()); ++i) {
        const float own = found[output].as<float>()[i];
        const float wanted = expected[output].as<float>()[i];
        CAPTURE(output);
        CAPTURE(i);
        CHECK(std::isnan(own) == std::isnan(wanted));
        if (std::isnan(wanted) || own == wanted) {
          CHECK((std::isnan(wanted) || std::signbit(own) == std::signbit(wanted)));
          continue;
        }
        CHECK(std::abs(static_cast<double>(own) - static_cast<double>(wanted)) <=
              error * std::abs(static_cast<double>(wanted)) + (error > 0 ? 2e-45 : 0));
      }
  }
}

}  // namespace

TEST_CASE("floor_div and mod have the bits of the portable kernels, also where one division is not exact") {
  check_pairs({floor_div, mod}, 0);
}

TEST_CASE("hypot and atan2 have the limits and signs of the portable kernels") {
  check_pairs({hypot, atan2}, 4e-7);
}

TEST_CASE("powers with one exponent, and their derivatives, agree with the portable kernels") {
  check_pairs(
      {[](Operand a, Operand) { return pow(a, 0); }, [](Operand a, Operand) { return pow(a, 1); },
       [](Operand a, Operand) { return pow(a, 2); }, [](Operand a, Operand) { return pow(a, 3); },
       [](Operand a, Operand) { return pow(a, -1); }, [](Operand a, Operand) { return pow(a, -2); },
       [](Operand a, Operand) { return pow(a, 0.5); }, [](Operand a, Operand) { return pow(2, a); }, pow},
      4e-7);
  const Agreement derivatives = agreement(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        const Node x = graph.input("x", {dtype, {70}});
        const Node exponent = graph.input("exponent", {dtype, {1}});
        std::vector<Node> found;
        for (const double fixed : {0., 1., 2., 3., 4., -1., 0.5})
          found.push_back(gradients(sum(pow(x, fixed)), {x})[0]);
        for (const Node& node : gradients(sum(pow(x, exponent * 0 + 2)), {x, exponent}))
          found.push_back(node);
        found.push_back(gradients(sum(gradients(sum(pow(x, exponent * 0 + 2)), {exponent})[0]), {x})[0]);
        return found;
      },
      {.low = 0.1, .high = 2});
  CHECK(derivatives.worst() < 1e-6);
}

TEST_CASE("vectorised functions are within their stated errors") {
  const auto sigmoid_of = [](double x) { return 1 / (1 + std::exp(-x)); };
  CHECK(largest_ulp_error("exp", std::exp, -87, 88.7) < 1.5);
  CHECK(largest_ulp_error("exp", std::exp, -1, 1) < 1.5);
  CHECK(largest_ulp_error("log", std::log, 1e-30, 4) < 2);
  CHECK(largest_ulp_error("log", std::log, 0.9, 1.1) < 2);
  CHECK(largest_ulp_error("log2", std::log2, 1e-30, 4) < 3.5);
  CHECK(largest_ulp_error("log2", std::log2, 0.9, 1.1) < 3.5);
  CHECK(largest_ulp_error("log10", std::log10, 1e-30, 4) < 3.5);
  CHECK(largest_ulp_error("log10", std::log10, 0.9, 1.1) < 3.5);
  CHECK(largest_ulp_error("tanh", std::tanh, -10, 10) < 3);
  CHECK(largest_ulp_error("tanh", std::tanh, -0.6, 0.6) < 3);
  CHECK(largest_ulp_error("sigmoid", sigmoid_of, -80, 80) < 3);
  for (const auto& [low, high] : {std::pair{-5.0, 5.0}, {-1.0, 1.0}, {0.88, 0.92}, {1e-6, 1e-2}})
    CHECK(largest_ulp_error("erf", std::erf, low, high) < 1.5);
  for (const auto& [low, high] :
       {std::pair{1e-30, 1e-20}, {1e-3, 0.9999999}, {0.99, 0.9999999}, {0.9999, 0.9999999}, {0.9965, 0.9967}})
    CHECK(largest_ulp_error("erfinv", inverse_of_erf, low, high) < 4);
  for (const double most : {1e-3, 0.5, 1.0, 20.0, 125.0})
    CHECK(largest_ulp_error("exp2", std::exp2, -most, most) < 1.5);
  for (const double most : {1e-20, 1e-3, 0.4, 2.0, 88.0})
    CHECK(largest_ulp_error("expm1", std::expm1, -most, most) < 2);
  CHECK(largest_ulp_error("expm1", std::expm1, 87.9, 88.72) < 2);
  for (const double most : {1e-20, 1e-3, 0.5, 0.999999}) {
    CHECK(largest_ulp_error("atan", std::atan, -most, most) < 3);
    CHECK(largest_ulp_error("asin", std::asin, -most, most) < 4);
    CHECK(largest_ulp_error("acos", std::acos, -most, most) < 4);
    CHECK(largest_ulp_error("atanh", std::atanh, -most, most) < 5);
  }
  CHECK(largest_ulp_error("atan", std::atan, -1e6, 1e6) < 3);
  for (const double most : {0.8, 4.0, 1e3, 1e6, 1e8}) {
    CHECK(largest_ulp_error("sin", std::sin, -most, most) < 2);
    CHECK(largest_ulp_error("cos", std::cos, -most, most) < 2);
    CHECK(largest_ulp_error("tan", std::tan, -most, most) < 4);
  }
  const auto softplus_of = [](double x) { return std::log1p(std::exp(x)); };
  CHECK(largest_ulp_error("softplus", softplus_of, -80, 80) < 4);
  CHECK(largest_ulp_error("softplus", softplus_of, -1, 1) < 4);
}

TEST_CASE("vectorised functions know their limits") {
  const float infinity = HUGE_VALF;
  CHECK(value_of("exp", -infinity) == 0);
  CHECK(value_of("exp", infinity) == infinity);
  CHECK(value_of("exp", 0) == 1);
  CHECK(value_of("log", 0) == -infinity);
  CHECK(value_of("log", infinity) == infinity);
  CHECK(std::isnan(value_of("log", -1)));
  CHECK(value_of("log", 1) == 0);
  for (const char* op : {"log2", "log10"}) {
    CHECK(value_of(op, 0) == -infinity);
    CHECK(value_of(op, infinity) == infinity);
    CHECK(std::isnan(value_of(op, -1)));
    CHECK(value_of(op, 1) == 0);
  }
  CHECK(value_of("log2", std::numeric_limits<float>::denorm_min()) == -149);
  CHECK(value_of("tanh", 100) == 1);
  CHECK(value_of("tanh", -infinity) == -1);
  CHECK(value_of("erf", infinity) == 1);
  CHECK(value_of("erf", -infinity) == -1);
  CHECK(std::signbit(value_of("erf", -0.F)));
  CHECK(value_of("erfinv", 1) == infinity);
  CHECK(value_of("erfinv", -1) == -infinity);
  CHECK(value_of("erfinv", -0.5F) == -value_of("erfinv", 0.5F));
  CHECK(std::signbit(value_of("erfinv", -0.F)));
  for (const float outside : {1.0000001F, -1.5F, infinity, -infinity})
    CHECK(std::isnan(value_of("erfinv", outside)));
  for (const char* op : {"sin", "tan"}) {
    CHECK(std::signbit(value_of(op, -0.F)));
    CHECK(value_of(op, 1e-40F) == 1e-40F);
  }
  CHECK(value_of("cos", 0) == 1);
  for (const char* op : {"sin", "cos", "tan"}) CHECK(std::isnan(value_of(op, infinity)));
  CHECK(value_of("exp2", 10) == 1024);
  CHECK(value_of("exp2", 200) == infinity);
  CHECK(value_of("exp2", infinity) == infinity);
  CHECK(value_of("exp2", -149) == std::numeric_limits<float>::denorm_min());
  CHECK(value_of("exp2", -infinity) == 0);
  for (const float large : {88.73F, 89.F, 100.F}) CHECK(value_of("expm1", large) == infinity);
  CHECK(value_of("expm1", infinity) == infinity);
  CHECK(value_of("expm1", -infinity) == -1);
  CHECK(value_of("atanh", 1) == infinity);
  CHECK(value_of("atanh", -1) == -infinity);
  CHECK(value_of("atan", infinity) == std::atan(infinity));
  CHECK(value_of("acos", 1) == 0);
  CHECK(value_of("acos", -1) == std::acos(-1.F));
  for (const char* op : {"expm1", "atanh", "asin", "atan"}) {
    CHECK(std::signbit(value_of(op, -0.F)));
    CHECK(value_of(op, -1e-40F) == -1e-40F);
  }
  for (const char* op : {"atanh", "asin", "acos"})
    for (const float outside : {-1.5F, 1.5F, infinity}) CHECK(std::isnan(value_of(op, outside)));
  CHECK(value_of("softplus", infinity) == infinity);
  CHECK(value_of("softplus", -infinity) == 0);
  CHECK(fast::VectorMath::log1p(infinity) == infinity);
  CHECK(fast::VectorMath::log1p(-1) == -infinity);
  CHECK(std::isnan(fast::VectorMath::log1p(-2)));
  CHECK(fast::VectorMath::log1p(1e-20F) == 1e-20F);
  CHECK(value_of("sigmoid", -infinity) == 0);
  CHECK(value_of("sigmoid", infinity) == 1);
  for (const char* op : {"exp", "log", "tanh", "sigmoid", "relu", "sqrt", "neg", "erf", "erfinv", "sin",
                         "cos", "tan", "softplus", "gelu", "expm1"})
    CHECK(std::isnan(value_of(op, NAN)));
}

TEST_CASE("elementwise ops agree with the portable kernels in double and leave zeros in the padding") {
  for (const std::int64_t channels : {1, 3, 17})
    for (const Layout& layout :
         {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)}) {
      const Shape shape{2, channels, 3, 5};
      const auto check = [&](const BuildGraph& build) {
        const Agreement result = agreement_of_node(build, {layout, layout});
        CHECK(result.uses("fast"));
        CHECK(result.worst() < bound);
      };
      for (const Unary op : unary_ops)
        check([&](Graph& graph, DType dtype) -> std::vector<Node> {
          return {op(graph.input("x", {dtype, shape}))};
        });
      for (const auto& ops : {binary_ops, comparisons})
        for (const Binary op : ops)
          check([&](Graph& graph, DType dtype) -> std::vector<Node> {
            return {op(graph.input("x", {dtype, shape}), graph.input("y", {dtype, shape}))};
          });
      for (const Binary op : {add, div})
        check([&](Graph& graph, DType dtype) -> std::vector<Node> {
          return {op(graph.input("x", {dtype, shape}), 2.5)};
        });
      check([&](Graph& graph, DType dtype) -> std::vector<Node> {
        return {1.5 - Operand(graph.input("x", {dtype, shape}))};
      });
      check([&](Graph& graph, DType dtype) -> std::vector<Node> {
        return {where(graph.input("c", {DType::boolean, shape}), graph.input("x", {dtype, shape}), -1)};
      });
    }
}

TEST_CASE("the logarithm agrees with the portable kernel in double") {
  const Agreement result = agreement_of_node(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        return {log(graph.input("x", {dtype, {2, 17, 3, 3}}))};
      },
      {blocked_channels(16)}, {.low = 0.1, .high = 10});
  CHECK(result.worst() < bound);
}

TEST_CASE("operands broadcast, in plain and blocked layouts") {
  const std::vector<std::pair<Shape, Shape>> shapes{{{4, 5}, {5}},
                                                    {{5}, {4, 5}},
                                                    {{4, 5}, {4, 1}},
                                                    {{4, 1}, {1, 5}},
                                                    {{2, 3, 4}, {3, 1}},
                                                    {{2, 17, 3, 3}, {1, 17, 1, 1}},
                                                    {{2, 17, 3, 3}, {}},
                                                    {{2, 3, 4, 4}, {3, 1, 1}},
                                                    {{2, 1, 3, 1, 2}, {4, 1, 5, 1}}};
  for (const auto& [a, b] : shapes)
    for (const Binary op : {add, sub, mul, div}) {
      CAPTURE(to_string(a));
      CAPTURE(to_string(b));
      const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
        return {op(graph.input("a", {dtype, a}), graph.input("b", {dtype, b}))};
      });
      CHECK(!result.uses("portable"));
      CHECK(result.worst() < bound);
    }
}

TEST_CASE("what is stretched beside blocked values is read where it lies, on either side") {
  for (const std::int64_t channels : {1, 17})
    for (const Shape& stretched : {Shape{1, channels, 1, 1}, Shape{channels, 1, 1}, Shape{2, channels, 1, 1},
                                   Shape{1, 1, 3, 3}, Shape{1, 1, 1, 1}, Shape{3}, Shape{}})
      for (const Binary op : {add, mul, div}) {
        CAPTURE(channels);
        CAPTURE(to_string(stretched));
        const Shape shape{2, channels, 3, 3};
        const Layout plain = Layout::row_major(stretched.rank());
        const Agreement right = agreement_of_node(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {op(graph.input("a", {dtype, shape}), graph.input("b", {dtype, stretched}))};
            },
            {blocked_channels(16), plain});
        CHECK(right.worst() < bound);
        const Agreement left = agreement_of_node(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {op(graph.input("b", {dtype, stretched}), graph.input("a", {dtype, shape}))};
            },
            {plain, blocked_channels(16)});
        CHECK(left.worst() < bound);
        const Agreement choice = agreement_of_node(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              return {where(graph.input("c", {DType::boolean, stretched}), graph.input("a", {dtype, shape}),
                            graph.input("b", {dtype, stretched}))};
            },
            {plain, blocked_channels(16), plain});
        CHECK(choice.worst() < bound);
      }
}

TEST_CASE("a single element in a block stands beside one that lies plain") {
  for (const Binary op : {add, sub, mul, weighted})
    for (const bool first : {true, false}) {
      const Agreement result = agreement_of_node(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            return {op(graph.input("a", {dtype, {1, 1, 1, 1}}), graph.input("b", {dtype, {1, 1, 1, 1}}))};
          },
          {first ? blocked_channels(16) : Layout::row_major(4),
           first ? Layout::row_major(4) : blocked_channels(16)});
      CHECK(result.worst() < bound);
    }
}

TEST_CASE("the gradient of relu is one loop, which gives 0 where the output is NaN") {
  for (const Shape& shape : {Shape{2, 17, 5, 3}, Shape{9, 7}, Shape{}}) {
    const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
      const Node x = log(graph.input("x", {dtype, shape}) + 0.5);
      const Node y = relu(x);
      const Node grad = graph.input("g", {dtype, shape});
      return {y, vjp(std::vector{y}, std::vector{grad}, std::vector{x})[0]};
    });
    CAPTURE(result.program);
    CHECK(result.uses("(gt+where) [fast]"));
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("a mask that others read is computed, and so is one that compares with another number") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node y = graph.input("y", {dtype, {40}});
    const Node grad = graph.input("g", {dtype, {40}});
    const Node mask = gt(y, 0);
    return {where(mask, grad, 0), cast(mask, dtype), where(gt(y, 0.25), grad, 0), where(gt(y, 0), grad, 0.5)};
  });
  CAPTURE(result.program);
  CHECK(!result.uses("(gt+where)"));
  CHECK(result.worst() < bound);
}

TEST_CASE("an image of one channel between convolutions keeps its elements and gradients") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const Node x = graph.input("x", {dtype, {2, 16, 6, 6}});
    const Node narrow = graph.input("narrow", {dtype, {1, 16, 3, 3}});
    const Node wide = graph.input("wide", {dtype, {16, 1, 3, 3}});
    const Node hidden = sigmoid(conv2d(x, narrow)) * graph.input("factor", {dtype, {1, 1, 1, 1}});
    const Node y = sigmoid(conv2d(hidden, wide) + graph.input("bias", {dtype, {16, 1, 1}}));
    std::vector<Node> results = gradients(sum(square(y)), {x, narrow, wide});
    results.push_back(y);
    results.push_back(sum(hidden, {.axes = {0, 2, 3}}));
    return results;
  });
  CHECK(result.worst() < 2e-6);
}

TEST_CASE("an op takes the layout that its operands come in, blocks of channels first") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 20, 5, 5}});
  const Node y = graph.input("y", x.type());
  for (const Layout& layout : {Layout::row_major(4), channels_last(), blocked_channels(16)}) {
    CAPTURE(to_string(layout));
    CHECK(offers(relu(x), {layout})[0].outputs[0] == layout);
    CHECK(offers(x + y, {layout, layout})[0].inputs == std::vector{layout, layout});
  }
  CHECK(offers(x + y, {Layout::row_major(4), blocked_channels(16)})[0].outputs[0] == blocked_channels(16));
}

TEST_CASE("values that are mostly padding may also be computed row-major, for inference") {
  const auto layouts = [](Mode mode, std::int64_t channels) {
    Graph graph(mode);
    const Node x = graph.input("x", {DType::float32, {2, channels, 5, 5}});
    std::vector<Layout> offered;
    for (const Candidate& candidate : offers(gelu(x), {blocked_channels(16)}))
      offered.push_back(candidate.outputs[0]);
    return offered;
  };
  CHECK(layouts(Mode::inference, 3) == std::vector{blocked_channels(16), Layout::row_major(4)});
  CHECK(layouts(Mode::inference, 7) == std::vector{blocked_channels(16), Layout::row_major(4)});
  CHECK(layouts(Mode::inference, 8) == std::vector{blocked_channels(16)});  // half of it is padding
  CHECK(layouts(Mode::inference, 20) == std::vector{blocked_channels(16)});
  CHECK(layouts(Mode::train, 3) == std::vector{blocked_channels(16)});
}

}  // namespace plexaura::testing::elementwise_test
