#include "core/ops/statistics.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>

#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::statistics_test {

namespace {

using Of = double (*)(const std::vector<double>&);

constexpr double infinity = std::numeric_limits<double>::infinity();

double product(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 1.0, std::multiplies<>());
}

double squares_from_mean(const std::vector<double>& values) {
  const double mean = reference::mean(values);
  double total = 0;
  for (const double value : values) total += (value - mean) * (value - mean);
  return total;
}

double variance(const std::vector<double>& values) {
  return squares_from_mean(values) / static_cast<double>(values.size() - 1);
}
double deviation(const std::vector<double>& values) {
  return std::sqrt(squares_from_mean(values) / static_cast<double>(values.size()));
}

double log_of_sum(const std::vector<double>& values) {
  long double total = 0;
  for (const double value : values) total += std::exp(static_cast<long double>(value));
  return static_cast<double>(std::log(total));
}

template <int p>
double norm_of(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += std::pow(std::fabs(value), p);
  return std::pow(total, 1.0 / p);
}

double largest_size(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::fabs(value));
  return result;
}
double smallest_size(const std::vector<double>& values) {
  double result = infinity;
  for (const double value : values) result = std::min(result, std::fabs(value));
  return result;
}
double not_zero(const std::vector<double>& values) {
  return static_cast<double>(std::ranges::count_if(values, [](double x) { return x != 0; }));
}
double place_of_smallest(const std::vector<double>& values) {
  return static_cast<double>(std::ranges::min_element(values) - values.begin());
}
double one_is_true(const std::vector<double>& values) { return not_zero(values) > 0 ? 1 : 0; }
double all_are_true(const std::vector<double>& values) {
  return not_zero(values) == static_cast<double>(values.size()) ? 1 : 0;
}

// `build` reduces over the axes; `of` computes the expected result.
template <class Build>
OpCase reduced(const std::string& name, const std::string& op, Shape shape, ReduceOptions over, Build build,
               Of of, Values values = between(-2, 2)) {
  return {name + " of " + to_string(shape) + ", " + std::to_string(over.axes.size()) + " axes",
          op,
          [=](Graph&, auto x) { return std::vector{build(x[0], over)}; },
          {{std::move(shape), std::move(values)}},
          [=](auto x) { return std::vector{reference::reduce(x[0], over, of)}; }};
}

const auto product_by_axes = [](const Node& x, const ReduceOptions& over) { return prod(x, over); };

OpCase product_case(Shape shape, ReduceOptions over) {
  OpCase op_case = reduced("prod", "mul", std::move(shape), std::move(over), product_by_axes, product,
                           away_from_zero(0.5, 1.5));
  op_case.tolerances = {.bfloat16 = 6e-2, .float16 = 8e-3};
  return op_case;
}

OpCase norm_case(double p, Of of, Shape shape, ReduceOptions over, Values values = away_from_zero(0.3)) {
  const std::string op = p == 2 ? "square" : (std::isinf(p) ? (p > 0 ? "max" : "min") : "abs");
  return reduced(
      "norm, p = " + std::to_string(p), op, std::move(shape), std::move(over),
      [=](const Node& x, const ReduceOptions& of_axes) {
        return norm(x, {.p = p, .axes = of_axes.axes, .keepdims = of_axes.keepdims});
      },
      of, std::move(values));
}

OpCase without_gradient(OpCase op_case) {
  op_case.differentiable = false;
  return op_case;
}

const auto variance_by_axes = [](const Node& x, const ReduceOptions& over) {
  return var(x, {.axes = over.axes, .keepdims = over.keepdims});
};
const auto deviation_by_axes = [](const Node& x, const ReduceOptions& over) {
  return std_dev(x, {.axes = over.axes, .keepdims = over.keepdims, .correction = 0});
};
const auto exponents_by_axes = [](const Node& x, const ReduceOptions& over) { return logsumexp(x, over); };
const auto any_by_axes = [](const Node& x, const ReduceOptions& over) { return any(x, over); };
const auto all_by_axes = [](const Node& x, const ReduceOptions& over) { return all(x, over); };
const auto place_by_axis = [](const Node& x, const ReduceOptions& over) {
  return argmin(x, over.axes[0], over.keepdims);
};

const Values different_sizes = these({1, -2, 0.5, 1.5, -0.25, 3, 0.75, -1.25, 2.5, -0.5, 1.75, 0.9});

const Cases cases({
    product_case({3, 5}, {.axes = {1}}),
    product_case({2, 3, 4}, {.axes = {0, -1}, .keepdims = true}),
    product_case({7}, {}),
    reduced("var", "square", {3, 5}, {}, variance_by_axes, variance),
    reduced("var", "square", {3, 5}, {.axes = {-1}, .keepdims = true}, variance_by_axes, variance),
    reduced("var", "square", {2, 3, 4}, {.axes = {0, 2}}, variance_by_axes, variance),
    reduced("std_dev", "sqrt", {3, 5}, {.axes = {0}}, deviation_by_axes, deviation),
    reduced("logsumexp", "exp", {3, 5}, {.axes = {1}}, exponents_by_axes, log_of_sum),
    reduced("logsumexp", "exp", {2, 3, 4}, {.axes = {0, 2}, .keepdims = true}, exponents_by_axes, log_of_sum),
    reduced("logsumexp", "exp", {3, 1}, {.axes = {1}}, exponents_by_axes, log_of_sum),
    norm_case(2, norm_of<2>, {3, 5}, {}),
    norm_case(2, norm_of<2>, {2, 3, 4}, {.axes = {-1}, .keepdims = true}),
    norm_case(1, norm_of<1>, {3, 5}, {.axes = {0}}),
    norm_case(3, norm_of<3>, {3, 5}, {.axes = {1}}),
    norm_case(-1, norm_of<-1>, {3, 5}, {.axes = {1}}),
    norm_case(infinity, largest_size, {3, 4}, {.axes = {1}}, different_sizes),
    norm_case(-infinity, smallest_size, {3, 4}, {.axes = {1}}, different_sizes),
    without_gradient(reduced(
        "norm, p = 0", "ne", {3, 5}, {.axes = {1}},
        [](const Node& x, const ReduceOptions& over) { return norm(x, {.p = 0, .axes = over.axes}); },
        not_zero, whole(-1, 2))),
    without_gradient(reduced("argmin", "argmax", {3, 5}, {.axes = {1}}, place_by_axis, place_of_smallest,
                             distinct(0.25))),
    without_gradient(reduced("argmin", "argmax", {3, 4, 5}, {.axes = {-2}, .keepdims = true}, place_by_axis,
                             place_of_smallest, distinct(0.25))),
    without_gradient(reduced("any", "max", {3, 5}, {.axes = {1}}, any_by_axes, one_is_true, whole(0, 2))),
    without_gradient(reduced("all", "min", {3, 2, 2}, {.axes = {1, 2}, .keepdims = true}, all_by_axes,
                             all_are_true, whole(0, 2))),
});

WrongCase refused(const std::string& op, const std::string& name, TensorType type, Node (*build)(Operand),
                  std::vector<std::string> words) {
  return {op + ", " + name, op, [=](Graph& graph) { build(graph.input("x", type)); }, std::move(words)};
}

const TensorType whole_numbers{DType::int64, {2, 3}};
const TensorType flags{DType::boolean, {2, 3}};
const TensorType floats{DType::float32, {2, 3}};
const TensorType nothing{DType::float32, {2, 0}};

const WrongCases wrong({
    refused("prod", "bools", flags, [](Operand x) { return prod(x); }, {"bool[2,3]", "use all()"}),
    refused("prod", "an axis that is not there", floats, [](Operand x) { return prod(x, {.axes = {2}}); },
            {"float32[2,3]", "axis 2 does not exist", "rank 2"}),
    refused("prod", "an axis twice", floats,
            [](Operand x) {
              return prod(x, {.axes = {1, -1}});
            },
            {"named twice"}),
    refused("var", "integers", whole_numbers, [](Operand x) { return var(x); }, {"floating", "cast()"}),
    refused("var", "one element", {DType::float32, {2, 1}}, [](Operand x) { return var(x, {.axes = {1}}); },
            {"1 elements are too few for a correction of 1", "smaller correction"}),
    refused("std_dev", "nothing", nothing, [](Operand x) { return std_dev(x, {.correction = 0}); },
            {"0 elements are too few for a correction of 0"}),
    refused("logsumexp", "integers", whole_numbers, [](Operand x) { return logsumexp(x); },
            {"floating", "cast()"}),
    refused("norm", "integers", whole_numbers, [](Operand x) { return norm(x); }, {"floating", "cast()"}),
    refused("norm", "p that is no number", floats, [](Operand x) { return norm(x, {.p = std::nan("")}); },
            {"p must be a number"}),
    refused("norm", "the largest of nothing", nothing, [](Operand x) { return norm(x, {.p = infinity}); },
            {"an axis is empty"}),
    refused("argmin", "bools", flags, [](Operand x) { return argmin(x, 0); }, {"bool", "cast()"}),
    refused("argmax", "argmin of nothing", nothing, [](Operand x) { return argmin(x, 1); },
            {"axis 1 is empty"}),
    refused("any", "an axis that is not there", flags, [](Operand x) { return any(x, {.axes = {-3}}); },
            {"axis -3 does not exist"}),
    refused("all", "an axis twice", flags,
            [](Operand x) {
              return all(x, {.axes = {0, 0}});
            },
            {"named twice"}),
});

struct Result {
  std::vector<double> value;
  std::vector<double> slopes;
};

Result at(Node (*function)(const Node& x), const Tensor& input) {
  Graph graph;
  const Node x = graph.input("x", input.type());
  const Node y = function(x);
  const auto results = Runner(graph, {y, gradients(sum(y), {x})[0]}, test_backend())({input});
  return {results[0].to_doubles(), results[1].to_doubles()};
}

}  // namespace

TEST_CASE("statistics: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("statistics: what they refuse") { check_all(wrong); }

TEST_CASE("the gradient of prod is right where elements are 0, and so is its second derivative") {
  const Result one = at([](const Node& x) { return prod(x); }, Tensor::of<double>({3}, {2, 0, 5}));
  CHECK(one.value == std::vector<double>{0});
  CHECK(one.slopes == std::vector<double>{0, 10, 0});
  const Result two = at([](const Node& x) { return prod(x); }, Tensor::of<double>({3}, {2, 0, 0}));
  CHECK(two.slopes == std::vector<double>{0, 0, 0});
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3}});
  const Node first = gradients(prod(x), {x})[0];
  const Node second = gradients(sum(first * first), {x})[0];
  const auto results = Runner(graph, {second}, test_backend())({Tensor::of<double>({3}, {2, 0, 5})});
  CHECK(results[0].to_doubles() == std::vector<double>{100, 0, 40});
}

TEST_CASE("prod, logsumexp, norm, any and all of nothing; prod of integers wraps around") {
  Graph graph;
  const Node none = graph.input("none", {DType::float32, {2, 0}});
  const Node numbers = graph.input("numbers", {DType::int32, {2, 2}});
  const auto results =
      Runner(graph,
             {prod(none, {.axes = {1}}), logsumexp(none, {.axes = {1}, .keepdims = true}),
              norm(none, {.axes = {1}}), any(none, {.axes = {1}}), all(none, {.axes = {1}}),
              prod(none, {.axes = {0}}), prod(numbers, {.axes = {1}})},
             test_backend())({Tensor(none.type()), Tensor::of<std::int32_t>({2, 2}, {1 << 30, 4, -3, 5})});
  CHECK(results[0].to_doubles() == std::vector<double>{1, 1});
  CHECK(results[1].shape() == Shape{2, 1});
  CHECK(results[1].to_doubles() == std::vector<double>{-infinity, -infinity});
  CHECK(results[2].to_doubles() == std::vector<double>{0, 0});
  CHECK(results[3].to_doubles() == std::vector<double>{0, 0});
  CHECK(results[4].to_doubles() == std::vector<double>{1, 1});
  CHECK(results[5].shape() == Shape{0});
  CHECK(results[6].to_doubles() == std::vector<double>{0, -15});
}

TEST_CASE("statistics along an axis that is written as a number") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 3}});
  const std::vector<Node> found{prod(x, 1), var(x, 0), std_dev(x, -1), logsumexp(x, 1), any(x, 1), all(x, 0)};
  const std::vector<Node> meant{prod(x, {.axes = {1}}),     var(x, {.axes = {0}}),
                                std_dev(x, {.axes = {-1}}), logsumexp(x, {.axes = {1}}),
                                any(x, {.axes = {1}}),      all(x, {.axes = {0}})};
  std::vector<Node> both = found;
  both.insert(both.end(), meant.begin(), meant.end());
  const auto results = Runner(graph, both, test_backend())({Tensor::of<double>({2, 3}, {1, 0, 3, 4, 5, 6})});
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(results[i] == results[i + found.size()]);
}

TEST_CASE("the variance of numbers far from zero keeps its digits") {
  const Result result =
      at([](const Node& x) { return var(x); }, Tensor::of<float>({4}, {10000, 10001, 10002, 10003}));
  CHECK(result.value[0] == doctest::Approx(5.0 / 3).epsilon(1e-6));
}

TEST_CASE("the variance of 16-bit floats is not computed in 16 bits") {
  Graph graph;
  const Node x = graph.input("x", {DType::float16, {2}});
  const auto results = Runner(graph, {std_dev(x, {.correction = 0}), norm(x)},
                              test_backend())({Tensor::of<double>({2}, {-1000, 1000}).cast(DType::float16)});
  CHECK(results[0].to_doubles()[0] == 1000);
  CHECK(results[1].to_doubles()[0] == 1414);
}

TEST_CASE("std_dev of equal elements and the norm of zeros have the gradient 0") {
  const Result equal = at([](const Node& x) { return std_dev(x); }, Tensor::of<double>({3}, {4, 4, 4}));
  CHECK(equal.value == std::vector<double>{0});
  CHECK(equal.slopes == std::vector<double>{0, 0, 0});
  const Tensor zeros = Tensor::of<double>({2}, {0, 0});
  for (Node (*function)(const Node&) :
       {+[](const Node& x) { return norm(x); }, +[](const Node& x) { return norm(x, {.p = 3}); },
        +[](const Node& x) { return norm(x, {.p = 1}); },
        +[](const Node& x) { return norm(x, {.p = 0.5}); }}) {
    const Result result = at(function, zeros);
    CHECK(result.value == std::vector<double>{0});
    CHECK(result.slopes == std::vector<double>{0, 0});
  }
}

TEST_CASE("norm of order 3: zeros give 0 and gradient 0; (0, -1) gives 1") {
  const auto cubes = [](const Node& x) { return norm(x, {.p = 3}); };
  const Result zeros = at(cubes, Tensor::of<double>({2}, {0, 0}));
  CHECK(zeros.value[0] == 0);
  CHECK(zeros.slopes == std::vector<double>{0, 0});
  const Result one = at(cubes, Tensor::of<double>({2}, {0, -1}));
  CHECK(one.value[0] == 1);
  CHECK(one.slopes == std::vector<double>{0, -1});
}

TEST_CASE("logsumexp does not overflow, and takes infinities") {
  const auto rows = [](const Node& x) { return logsumexp(x, {.axes = {1}}); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Result result =
      at(+rows,
         Tensor::of<double>({5, 2}, {1000, 1000, -1000, -1000, -infinity, -infinity, infinity, 0, nan, 0}));
  CHECK(result.value[0] == doctest::Approx(1000 + std::log(2.0)));
  CHECK(result.value[1] == doctest::Approx(-1000 + std::log(2.0)));
  CHECK(result.value[2] == -infinity);
  CHECK(result.value[3] == infinity);
  CHECK(std::isnan(result.value[4]));
  CHECK(std::vector(result.slopes.begin(), result.slopes.begin() + 6) ==
        std::vector<double>{0.5, 0.5, 0.5, 0.5, 0, 0});
}

TEST_CASE("argmin names the first of equal elements, a NaN before all, and the smallest integer") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 3}});
  const Node numbers = graph.input("numbers", {DType::int64, {3}});
  const Node bytes = graph.input("bytes", {DType::uint8, {3}});
  const auto results = Runner(graph, {argmin(x, 1), argmin(numbers, 0), argmin(bytes, 0)}, test_backend())(
      {Tensor::of<double>({2, 3}, {3, 1, 1, 0, std::nan(""), -1}),
       Tensor::of<std::int64_t>({3}, {0, std::numeric_limits<std::int64_t>::min(), -1}),
       Tensor::of<std::uint8_t>({3}, {255, 4, 0})});
  CHECK(results[0] == Tensor::of<std::int64_t>({2}, {1, 1}));
  CHECK(results[1].to_doubles() == std::vector<double>{1});
  CHECK(results[2].to_doubles() == std::vector<double>{2});
}

}  // namespace plexaura::testing::statistics_test
