#include "core/ops/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

#include "core/graph/graph.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"

namespace plexaura::testing::layer_norm_test {

namespace {

// Each `width` consecutive elements are one sample.
Tensor expected_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon) {
  Tensor y = x;
  const auto width = static_cast<std::size_t>(scale.elements());
  const auto values = y.as<double>();
  for (std::size_t begin = 0; begin < values.size(); begin += width) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < width; ++i) mean += values[begin + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      variance += std::pow(values[begin + i] - mean, 2) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      values[begin + i] = scale.as<double>()[i] * (values[begin + i] - mean) / std::sqrt(variance + epsilon) +
                          shift.as<double>()[i];
  }
  return y;
}

OpCase normalised(const std::string& name, Shape x, const Shape& last, double epsilon,
                  std::optional<DType> statistics = {}) {
  return {"layer_norm, " + name,
          "mean",
          [=](Graph&, auto of) { return std::vector{layer_norm(of[0], of[1], of[2], {.epsilon = epsilon})}; },
          {{std::move(x), between(-2, 2)},
           {last, between(0.5, 2), statistics},
           {last, between(-1, 1), statistics}},
          [=](auto of) { return std::vector{expected_norm(of[0], of[1], of[2], epsilon)}; },
          true,
          true,
          {DType::float64, DType::float32}};
}

OpCase standard(const std::string& name, Shape x, const Shape& last) {
  Tensor ones({DType::float64, last});
  std::ranges::fill(ones.as<double>(), 1);
  return {"standardise, " + name,
          "mean",
          [=](Graph&, auto of) { return std::vector{standardise(of[0], last.rank())}; },
          {{std::move(x), between(-2, 2)}},
          [=](auto of) { return std::vector{expected_norm(of[0], ones, Tensor(ones.type()), 1e-5)}; },
          true,
          true,
          {DType::float64, DType::float32}};
}

// Each row is divided by the root of its mean square.
OpCase by_root_mean_square(const std::string& name, Shape x, const Shape& last, RmsNormOptions options,
                           double epsilon) {
  return {"rms_norm, " + name,
          "mean",
          [=](Graph&, auto of) { return std::vector{rms_norm(of[0], of[1], options)}; },
          {{std::move(x), between(-2, 2)}, {last, between(0.5, 2)}},
          [=](auto of) {
            Tensor y = of[0];
            const auto width = static_cast<std::size_t>(last.elements());
            const auto values = y.template as<double>();
            for (std::size_t begin = 0; begin < values.size(); begin += width) {
              double square = 0;
              for (std::size_t i = 0; i < width; ++i)
                square += values[begin + i] * values[begin + i] / static_cast<double>(width);
              for (std::size_t i = 0; i < width; ++i)
                values[begin + i] *= of[1].template as<double>()[i] / std::sqrt(square + epsilon);
            }
            return std::vector{y};
          },
          true,
          true,
          {DType::float64, DType::float32}};
}

const Cases cases({
    by_root_mean_square("rows", {4, 7}, {7}, {}, 0),
    by_root_mean_square("the last two axes", {2, 3, 4}, {3, 4}, {.epsilon = 0.1}, 0.1),
    standard("rows", {4, 7}, {7}),
    standard("the last two axes", {2, 3, 4}, {3, 4}),
    normalised("rows", {4, 7}, {7}, 1e-5),
    normalised("the last two axes", {2, 3, 4}, {3, 4}, 1e-3),
    normalised("a sequence", {2, 3, 5}, {5}, 1e-5),
    normalised("one sample", {6}, {6}, 0.1),
});

WrongCase refused(const std::string& name, const TensorType& x, const TensorType& scale,
                  const TensorType& shift, std::vector<std::string> words, double epsilon = 1e-5) {
  return {"layer_norm, " + name, "layer_norm",
          [=](Graph& graph) {
            layer_norm(graph.input("x", x), graph.input("scale", scale), graph.input("shift", shift),
                       {.epsilon = epsilon});
          },
          std::move(words)};
}

WrongCase refused(const std::string& name, const TensorType& x, std::int64_t axes,
                  std::vector<std::string> words, double epsilon = 1e-5) {
  return {"standardise, " + name, "standardise",
          [=](Graph& graph) { standardise(graph.input("x", x), axes, {.epsilon = epsilon}); },
          std::move(words)};
}

constexpr DType f32 = DType::float32;

const WrongCases wrong({
    {"rms_norm, another width",
     "rms_norm",
     [](Graph& graph) {
       rms_norm(graph.input("x", {f32, {2, 3}}), graph.input("scale", {f32, {2}}));
     },
     {"last axes of the input"}},
    {"rms_norm, a narrow scale",
     "rms_norm",
     [](Graph& graph) {
       rms_norm(graph.input("x", {DType::float16, {2, 3}}), graph.input("scale", {DType::float16, {3}}));
     },
     {"the scale must be float32"}},
    {"rms_norm, a negative epsilon",
     "rms_norm",
     [](Graph& graph) {
       rms_norm(graph.input("x", {f32, {2, 3}}), graph.input("scale", {f32, {3}}), {.epsilon = -1});
     },
     {"epsilon must be at least 0, not -1"}},
    refused("of integers", {DType::int64, {2, 3}}, 1, {"floating", "cast()"}),
    refused("no axis", {f32, {2, 3}}, 0, {"axes must be at least 1 and at most the input's 2, not 0"}),
    refused("of a scalar", {f32, {}}, 1, {"at most the input's 0, not 1"}),
    refused("no epsilon", {f32, {2, 3}}, 1, {"epsilon must be above 0, not 0"}, 0),
    refused("a negative epsilon", {f32, {2, 3}}, 1, {"epsilon must be above 0, not -1"}, -1),
    refused("of integers", {DType::int64, {2, 3}}, {f32, {3}}, {f32, {3}},
            {"layer_norm(int64[2,3], float32[3], float32[3])", "floating", "cast()"}),
    refused("another width", {f32, {2, 3}}, {f32, {2}}, {f32, {2}},
            {"layer_norm(float32[2,3], float32[2], float32[2])", "last axes of the input"}),
    refused("no axis", {f32, {2, 3}}, {f32, {}}, {f32, {}}, {"last axes", "at least one"}),
    refused("more axes", {f32, {3}}, {f32, {2, 3}}, {f32, {2, 3}}, {"last axes"}),
    refused("two shapes", {f32, {2, 3}}, {f32, {3}}, {f32, {2, 3}}, {"float32 of one shape"}),
    refused("narrow scale", {DType::float16, {2, 3}}, {DType::float16, {3}}, {DType::float16, {3}},
            {"scale and shift must be float32"}),
    refused("no epsilon", {f32, {2, 3}}, {f32, {3}}, {f32, {3}}, {"epsilon must be above 0, not 0"}, 0),
});

}  // namespace

TEST_CASE("layer_norm and standardise: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("layer_norm and standardise: what they refuse") { check_all(wrong); }

TEST_CASE("the epsilon of rms_norm is that of the dtype in which it computes") {
  constexpr double small = 1e-4;
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
    const DType wide = dtype == DType::float64 ? dtype : DType::float32;
    Graph graph;
    const Node x = graph.input("x", {dtype, {1}});
    const Node y = rms_norm(x, graph.input("scale", {wide, {1}}));
    const Tensor of_x = Tensor::of<double>({1}, {small}).cast(dtype);
    const double value = of_x.to_doubles()[0];
    const double epsilon = wide == DType::float64 ? std::numeric_limits<double>::epsilon()
                                                  : std::numeric_limits<float>::epsilon();
    const auto results = Runner(graph, {y}, test_backend())({of_x, Tensor::of<double>({1}, {1}).cast(wide)});
    CHECK(results[0].to_doubles()[0] ==
          doctest::Approx(value / std::sqrt(value * value + epsilon)).epsilon(5e-3));
  }
}

TEST_CASE("layer_norm of 16 bits computes in float32") {
  const OpCase op_case = normalised("16 bits", {3, 8}, {8}, 1e-5, DType::float32);
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    const CaseReport report = check_forward(op_case, dtype, test_backend());
    CHECK_MESSAGE(report.passed(), report.failures);
  }
}

}  // namespace plexaura::testing::layer_norm_test
