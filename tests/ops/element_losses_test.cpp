#include "core/ops/element_losses.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::element_losses_test {

namespace {

using reference::elementwise;

double distance(double a, double b) { return std::fabs(a - b); }
double huber_of(double a, double b) {
  const double d = std::fabs(a - b);
  return d < 0.7 ? d * d / 2 : 0.7 * (d - 0.35);
}
double wide_huber_of(double a, double b) { return 1.3 * (std::fabs(a - b) - 0.65); }  // of distant numbers
double smooth(double a, double b) { return huber_of(a, b) / 0.7; }
double entropy(double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); }
double divergence(double x, double t) { return t * std::log(t / std::exp(x)); }
double poisson(double x, double t) { return std::exp(x) - t * x; }
double hinge_of(double x, double t) { return std::max(0.0, 1 - t * x); }
double gaussian(double x, double t, double v) { return (std::log(v) + (x - t) * (x - t) / v) / 2; }
double ranking(double a, double b, double t) { return std::max(0.0, 0.3 - t * (a - b)); }

Node smooth_l1_of(Operand x, Operand t, Reduction reduction) { return smooth_l1(x, t, 0.7, reduction); }
Node huber_loss(Operand x, Operand t, Reduction reduction) { return huber(x, t, 0.7, reduction); }
Node wide_huber(Operand x, Operand t, Reduction reduction) { return huber(x, t, 1.3, reduction); }

Tensor joined(const Tensor& elements, Reduction reduction) {
  if (reduction == Reduction::none) return elements;
  return reference::reduce(elements, {}, reduction == Reduction::sum ? reference::sum : reference::mean);
}

OpCase of_two(const std::string& name, const std::string& op, Node (*loss)(Operand, Operand, Reduction),
              double (*expected)(double, double), Reduction reduction, Values x, Values t) {
  OpCase op_case{name + ", " + std::string(name_of(reduction)),
                 op,
                 [=](Graph&, auto given) { return std::vector{loss(given[0], given[1], reduction)}; },
                 {{{3, 4}, std::move(x)}, {{3, 4}, std::move(t)}},
                 [=](auto given) { return std::vector{joined(elementwise(expected)(given)[0], reduction)}; }};
  op_case.tolerances = {.bfloat16 = 6e-2, .float16 = 8e-3};
  return op_case;
}

const Values signs = these({1, -1, 1, 1, -1, -1, 1, -1, 1, -1, -1, 1});
const Values above = between(1, 2);
const Values below = between(-2, -1);
const Values probability = between(0.2, 0.8);

const Cases cases({
    of_two("l1", "abs", l1, distance, Reduction::mean, above, below),
    of_two("l1", "abs", l1, distance, Reduction::sum, above, below),
    of_two("l1", "abs", l1, distance, Reduction::none, above, below),
    of_two("smooth_l1, far", "huber", smooth_l1_of, smooth, Reduction::mean, above, below),
    of_two("smooth_l1, near", "huber", smooth_l1_of, smooth, Reduction::none, between(0.35, 0.6),
           between(0, 0.25)),
    of_two("huber, far", "huber", huber_loss, huber_of, Reduction::sum, above, below),
    of_two("huber, near", "huber", huber_loss, huber_of, Reduction::none, between(0.35, 0.6),
           between(0, 0.25)),
    of_two("huber, far from 1.3", "huber", wide_huber, wide_huber_of, Reduction::mean, above, below),
    of_two("binary_cross_entropy", "log", binary_cross_entropy, entropy, Reduction::mean, probability,
           probability),
    of_two("kl_div", "mul_no_nan", kl_div, divergence, Reduction::none, between(-2, -0.2), probability),
    of_two("poisson_nll", "exp", poisson_nll, poisson, Reduction::mean, between(-1, 1), between(0, 3)),
    of_two("hinge", "relu", hinge, hinge_of, Reduction::mean, distinct(0.3), signs),
    {"gaussian_nll",
     "log",
     [](Graph&, auto x) { return std::vector{gaussian_nll(x[0], x[1], x[2], 1e-6, Reduction::mean)}; },
     {{{3, 4}}, {{3, 4}}, {{3, 4}, between(0.3, 2)}},
     [](auto x) { return std::vector{joined(elementwise(gaussian)(x)[0], Reduction::mean)}; },
     true,
     true,
     {DType::float64, DType::float32}},
    {"margin_ranking",
     "relu",
     [](Graph&, auto x) { return std::vector{margin_ranking(x[0], x[1], x[2], 0.3, Reduction::none)}; },
     {{{3, 4}, between(1, 2)}, {{3, 4}, below}, {{3, 4}, signs}},
     elementwise(ranking)},
});

using Loss = Node (*)(Operand, Operand);

WrongCase of_types(const std::string& op, const std::string& name, Loss loss, TensorType a, TensorType b,
                   std::vector<std::string> words) {
  return {op + ", " + name, op, [=](Graph& graph) { loss(graph.input("a", a), graph.input("b", b)); },
          std::move(words)};
}

WrongCase of_two_shapes(const std::string& op, Loss loss) {
  return of_types(op, "two shapes", loss, {DType::float32, {3, 1}}, {DType::float32, {3}},
                  {"float32[3,1], float32[3]", "one type and shape", "reshape"});
}

const TensorType floats{DType::float32, {3}};

// A number that the dtype rounds to 0 or to infinity.
WrongCase out_of_range(const std::string& op, const std::string& what, Node (*loss)(Operand, Operand, double),
                       DType dtype, double number) {
  const TensorType type{dtype, {3}};
  return {op + ", " + what + " is out of the range of " + std::string(name_of(dtype)) + ": " +
              std::to_string(number),
          op,
          [=](Graph& graph) { loss(graph.input("a", type), graph.input("b", type), number); },
          {what + " must be from ", "cast() the operands to a wider type"}};
}

Node smooth_l1_with(Operand a, Operand b, double beta) { return smooth_l1(a, b, beta); }
Node huber_with(Operand a, Operand b, double delta) { return huber(a, b, delta); }
Node gaussian_with(Operand a, Operand b, double epsilon) { return gaussian_nll(a, b, a, epsilon); }

const WrongCases wrong({
    of_two_shapes("l1", [](Operand a, Operand b) { return l1(a, b); }),
    of_two_shapes("smooth_l1", [](Operand a, Operand b) { return smooth_l1(a, b); }),
    of_two_shapes("huber", [](Operand a, Operand b) { return huber(a, b); }),
    of_two_shapes("binary_cross_entropy", [](Operand a, Operand b) { return binary_cross_entropy(a, b); }),
    of_two_shapes("kl_div", [](Operand a, Operand b) { return kl_div(a, b); }),
    of_two_shapes("poisson_nll", [](Operand a, Operand b) { return poisson_nll(a, b); }),
    of_two_shapes("gaussian_nll", [](Operand a, Operand b) { return gaussian_nll(a, a, b); }),
    of_two_shapes("hinge", [](Operand a, Operand b) { return hinge(a, b); }),
    of_two_shapes("margin_ranking", [](Operand a, Operand b) { return margin_ranking(a, a, b); }),
    of_types("l1", "integers", [](Operand a, Operand b) { return l1(a, b); }, {DType::int64, {3}},
             {DType::int64, {3}}, {"must be floating", "cast()"}),
    of_types("smooth_l1", "beta is 0", [](Operand a, Operand b) { return smooth_l1(a, b, 0); }, floats,
             floats, {"beta must be a finite number above 0, not 0"}),
    of_types("huber", "delta is negative", [](Operand a, Operand b) { return huber(a, b, -1); }, floats,
             floats, {"delta must be a finite number above 0, not -1"}),
    out_of_range("smooth_l1", "beta", smooth_l1_with, DType::float32, 1e39),
    out_of_range("smooth_l1", "beta", smooth_l1_with, DType::float32, 1e-39),
    out_of_range("smooth_l1", "beta", smooth_l1_with, DType::bfloat16, 3.4e38),
    out_of_range("smooth_l1", "beta", smooth_l1_with, DType::float16, 1e5),
    out_of_range("smooth_l1", "beta", smooth_l1_with, DType::float16, 1e-8),
    out_of_range("smooth_l1", "beta", smooth_l1_with, DType::float64, 1e-310),
    out_of_range("huber", "delta", huber_with, DType::float32, 1e39),
    out_of_range("huber", "delta", huber_with, DType::float16, 1e5),
    out_of_range("gaussian_nll", "epsilon", gaussian_with, DType::float16, 1e-8),
    of_types("margin_ranking", "no margin",
             [](Operand a, Operand b) { return margin_ranking(a, b, b, std::nan("")); }, floats, floats,
             {"the margin must be a finite number, not nan"}),
});

}  // namespace

TEST_CASE("losses of elements: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("losses of elements: what they refuse") { check_all(wrong); }

TEST_CASE("the loss of no elements is 0") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {0, 2}});
  const auto results =
      Runner(graph, {l1(x, x), huber(x, x, 1, Reduction::sum)}, test_backend())({Tensor(x.type())});
  CHECK(results[0].to_doubles() == std::vector<double>{0});
  CHECK(results[1].to_doubles() == std::vector<double>{0});
}

TEST_CASE(
    "the gradient of smooth_l1 is clipped, also for infinite differences, and its derivative ends at the "
    "limits") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::float64}) {
    Graph graph;
    const Node x = graph.input("x", {dtype, {10}});
    const Node t = graph.input("t", {dtype, {10}});
    const Node loss = smooth_l1(x, t, 2, Reduction::none);
    const std::vector<Node> slopes = gradients(sum(loss), {x, t});
    const Node curvature = gradients(sum(slopes[0]), {x})[0];
    const auto results = Runner(graph, {loss, slopes[0], slopes[1], curvature}, test_backend())(
        {Tensor::of<double>({10}, {infinity, -infinity, 3, -3, 2, -2, 1, -1, -0.0, 1}).cast(dtype),
         Tensor::of<double>({10}, {0, 0, 0, 0, 0, 0, 0, 0, 0, std::nan("")}).cast(dtype)});
    std::vector<std::vector<double>> found;
    for (const Tensor& result : results) {
      found.push_back(result.to_doubles());
      CHECK(std::isnan(found.back().back()) == (found.size() < 4));
      found.back().pop_back();
    }
    CHECK(found[0] == std::vector<double>{infinity, infinity, 2, 2, 1, 1, 0.25, 0.25, 0});
    CHECK(found[1] == std::vector<double>{1, -1, 1, -1, 1, -1, 0.5, -0.5, 0});
    CHECK(found[2] == std::vector<double>{-1, 1, -1, 1, -1, 1, -0.5, 0.5, 0});
    CHECK(found[3] == std::vector<double>{0, 0, 0, 0, 0, 0, 0.5, 0.5, 0.5});
  }
}

TEST_CASE("the second derivative of huber is 0 at the limits") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {4}});
  const Node t = graph.input("t", {DType::float64, {4}});
  const Node slope = gradients(huber(x, t, 2, Reduction::sum), {x})[0];
  const auto results = Runner(graph, {slope, gradients(sum(slope), {x})[0]}, test_backend())(
      {Tensor::of<double>({4}, {-2, 2, 1.5, -3}), Tensor::of<double>({4}, {0, 0, 0, 0})});
  CHECK(results[0].to_doubles() == std::vector<double>{-2, 2, 1.5, -2});
  CHECK(results[1].to_doubles() == std::vector<double>{0, 0, 1, 0});
}

TEST_CASE("smooth_l1 is finite wherever its result is") {
  struct Extreme {
    DType dtype;
    double beta;
    double distance;
    double loss;
    double slope;
  };
  for (const auto& [dtype, beta, distance, loss, slope] :
       {Extreme{DType::float16, 1000, 400, 80, 0.4}, Extreme{DType::float16, 65504, 60000, 27480, 0.916},
        Extreme{DType::float16, 0x1p-24, 60000, 60000, 1},
        Extreme{DType::bfloat16, 0x1.FEp127, 0x1.FEp127, 0x1.FEp126, 1},
        Extreme{DType::float32, 1.2e-38, 1e20, 1e20, 1}, Extreme{DType::float16, 1e-6, 60000, 60000, 1},
        Extreme{DType::float16, 1e-6, 0, 0, 0}, Extreme{DType::float32, 1e38, 1e20, 50, 1e-18},
        Extreme{DType::float32, 1e38, 2e38, 1.5e38, 1},
        Extreme{DType::float64, 1e300, 1e160, 5e19, 1e-140}}) {
    CAPTURE(name_of(dtype));
    CAPTURE(beta);
    CAPTURE(distance);
    Graph graph;
    const Node x = graph.input("x", {dtype, {1}});
    const Node t = graph.input("t", {dtype, {1}});
    const Node losses = smooth_l1(x, t, beta, Reduction::sum);
    const auto results = Runner(graph, {losses, gradients(losses, {x})[0]}, test_backend())(
        {Tensor::of<double>({1}, {distance}).cast(dtype), Tensor::of<double>({1}, {0}).cast(dtype)});
    CHECK(results[0].to_doubles()[0] == doctest::Approx(loss).epsilon(1e-3));
    CHECK(results[1].to_doubles()[0] == doctest::Approx(slope).epsilon(1e-3));
  }
}

TEST_CASE("binary_cross_entropy and kl_div are finite at probabilities of 0 and 1") {
  Graph graph;
  const Node p = graph.input("p", {DType::float32, {4}});
  const Node t = graph.input("t", {DType::float32, {4}});
  const Node loss = binary_cross_entropy(p, t, Reduction::none);
  const auto results =
      Runner(graph, {loss, gradients(sum(loss), {p})[0], kl_div(p, t, Reduction::none)},
             test_backend())({Tensor::of<float>({4}, {0, 0, 1, 1}), Tensor::of<float>({4}, {0, 1, 1, 0})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, 100, 0, 100});
  for (const double slope : results[1].to_doubles()) CHECK(std::isfinite(slope));
  CHECK(results[2].to_doubles() == std::vector<double>{0, 0, -1, 0});
}

}  // namespace plexaura::testing::element_losses_test
