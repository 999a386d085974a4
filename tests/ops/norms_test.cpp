#include "core/ops/norms.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "core/graph/graph.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::norms_test {

namespace {

using reference::at;
using reference::Index;

// The elements of x in the group and the sample of the element at `of`, which has them in any order.
std::vector<double> group_around(const Tensor& x, const Index& of, std::int64_t groups) {
  const std::int64_t channels = x.shape()[1] / groups;
  std::vector<double> elements;
  reference::for_each_index(x.shape(), [&](const Index& index) {
    if (index[0] == of[0] && index[1] / channels == of[1] / channels) elements.push_back(at(x, index));
  });
  return elements;
}

Tensor expected_groups(const Tensor& x, std::int64_t groups, double epsilon) {
  Tensor y = reference::zeros(x.shape());
  reference::for_each_index(x.shape(), [&](const Index& index) {
    const std::vector<double> elements = group_around(x, index, groups);
    const auto count = static_cast<double>(elements.size());
    double mean = 0;
    double variance = 0;
    for (const double element : elements) mean += element / count;
    for (const double element : elements) variance += std::pow(element - mean, 2) / count;
    at(y, index) = (at(x, index) - mean) / std::sqrt(variance + epsilon);
  });
  return y;
}

Tensor scaled(const Tensor& y, const Tensor& scale, const Tensor& shift) {
  Tensor z = y;
  reference::for_each_index(y.shape(), [&](const Index& index) {
    at(z, index) = at(y, index) * at(scale, index[1]) + at(shift, index[1]);
  });
  return z;
}

const std::vector<DType> wide{DType::float64, DType::float32};

OpCase grouped(const std::string& name, Shape x, std::int64_t groups, double epsilon,
               std::optional<DType> statistics = {}) {
  const Shape channels{x[1]};
  return {"group_norm, " + name,
          "mean",
          [=](Graph&, auto in) {
            return std::vector{group_norm(in[0], groups, in[1], in[2], {.epsilon = epsilon})};
          },
          {{std::move(x), between(-2, 2)},
           {channels, between(0.5, 2), statistics},
           {channels, between(-1, 1), statistics}},
          [=](auto in) { return std::vector{scaled(expected_groups(in[0], groups, epsilon), in[1], in[2])}; },
          true,
          true,
          wide};
}

Tensor expected_response(const Tensor& x, std::int64_t size, const LocalResponseNormOptions& options) {
  Tensor y = reference::zeros(x.shape());
  reference::for_each_index(x.shape(), [&](const Index& index) {
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      Index neighbour = index;
      neighbour[1] += i - size / 2;
      if (neighbour[1] >= 0 && neighbour[1] < x.shape()[1]) sum += std::pow(at(x, neighbour), 2);
    }
    const double divisor = options.k + options.alpha * sum / static_cast<double>(size);
    at(y, index) = at(x, index) / std::pow(divisor, options.beta);
  });
  return y;
}

OpCase responding(const std::string& name, Shape x, std::int64_t size, LocalResponseNormOptions options) {
  return {"local_response_norm, " + name,
          "avg_pool2d",
          [=](Graph&, auto in) { return std::vector{local_response_norm(in[0], size, options)}; },
          {{std::move(x), between(-2, 2)}},
          [=](auto in) { return std::vector{expected_response(in[0], size, options)}; },
          true,
          true,
          wide};
}

const Cases cases({
    grouped("two groups of images", {2, 4, 2, 3}, 2, 1e-5),
    grouped("one group", {2, 3, 4}, 1, 1e-3),
    grouped("rows", {3, 6}, 2, 1e-5),
    {"group_norm without scale",
     "mean",
     [](Graph&, auto in) { return std::vector{group_norm(in[0], 3)}; },
     {{{2, 6, 2}, between(-2, 2)}},
     [](auto in) { return std::vector{expected_groups(in[0], 3, 1e-5)}; },
     true,
     true,
     wide},
    {"instance_norm",
     "mean",
     [](Graph&, auto in) { return std::vector{instance_norm(in[0], in[1], in[2], {.epsilon = 1e-3})}; },
     {{{2, 3, 2, 3}, between(-2, 2)}, {{3}, between(0.5, 2)}, {{3}}},
     [](auto in) { return std::vector{scaled(expected_groups(in[0], 3, 1e-3), in[1], in[2])}; },
     true,
     true,
     wide},
    {"instance_norm without scale",
     "mean",
     [](Graph&, auto in) { return std::vector{instance_norm(in[0])}; },
     {{{2, 3, 5}, between(-2, 2)}},
     [](auto in) { return std::vector{expected_groups(in[0], 3, 1e-5)}; },
     true,
     true,
     wide},
    responding("five neighbours", {2, 7, 2, 2}, 5, {.alpha = 0.5, .beta = 0.75, .k = 2}),
    responding("no neighbours but itself", {2, 3, 2}, 1, {.alpha = 0.5, .beta = 0.75, .k = 2}),
    responding("an even number of neighbours", {1, 5, 3}, 4, {.alpha = 1, .beta = 0.5, .k = 1}),
    responding("more neighbours than channels", {1, 2, 2, 1, 2}, 5, {.alpha = 1, .beta = 1, .k = 0.5}),
});

constexpr DType f32 = DType::float32;

WrongCase refused(const std::string& name, const TensorType& x, std::int64_t groups, const TensorType& scale,
                  std::vector<std::string> words, double epsilon = 1e-5) {
  return {"group_norm, " + name, "group_norm",
          [=](Graph& graph) {
            group_norm(graph.input("x", x), groups, graph.input("scale", scale), graph.input("shift", scale),
                       {.epsilon = epsilon});
          },
          std::move(words)};
}

WrongCase refused(const std::string& name, const TensorType& x, std::int64_t size,
                  LocalResponseNormOptions options, std::vector<std::string> words) {
  return {"local_response_norm, " + name, "local_response_norm",
          [=](Graph& graph) { local_response_norm(graph.input("x", x), size, options); }, std::move(words)};
}

const WrongCases wrong({
    refused("of integers", {DType::int64, {2, 4}}, 2, {f32, {4}}, {"floating", "cast()"}),
    {"instance_norm of rows",
     "instance_norm",
     [](Graph& graph) {
       const Node channels = graph.input("channels", {f32, {4}});
       instance_norm(graph.input("x", {f32, {2, 4}}), channels, channels);
     },
     {"needs 3 axes or more"}},
    refused("of a vector", {f32, {4}}, 2, {f32, {4}}, {"needs 2 axes or more"}),
    refused("groups that do not divide", {f32, {2, 4, 3}}, 3, {f32, {4}},
            {"4 channels must be divisible", "here 3"}),
    refused("no groups", {f32, {2, 4, 3}}, 0, {f32, {4}}, {"1 or more (here 0)"}),
    refused("another scale", {f32, {2, 4, 3}}, 2, {f32, {3}},
            {"float32 with one element for each of the 4 channels"}),
    refused("a narrow scale", {DType::float16, {2, 4, 3}}, 2, {DType::float16, {4}}, {"must be float32"}),
    refused("no epsilon", {f32, {2, 4, 3}}, 2, {f32, {4}}, {"epsilon must be above 0, not 0"}, 0),
    {"instance_norm of rows",
     "instance_norm",
     [](Graph& graph) {
       instance_norm(graph.input("x", {f32, {2, 4}}));
     },
     {"needs 3 axes or more"}},
    refused("no neighbours", {f32, {2, 4, 3}}, 0, LocalResponseNormOptions{}, {"1 or more, not 0"}),
    refused("no k", {f32, {2, 4, 3}}, 3, LocalResponseNormOptions{.k = 0}, {"k must be above 0, not 0"}),
    refused("a negative k", {f32, {2, 4, 3}}, 3, LocalResponseNormOptions{.k = -1},
            {"k must be above 0, not -1"}),
    refused("rows", {f32, {2, 4}}, 3, LocalResponseNormOptions{}, {"needs 3 axes or more"}),
});

}  // namespace

TEST_CASE("norms: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("norms: what they refuse") { check_all(wrong); }

TEST_CASE("norms of 16 bits compute in float32") {
  const std::vector<OpCase> both{grouped("16 bits", {2, 4, 3}, 2, 1e-5, DType::float32),
                                 responding("16 bits", {2, 5, 3}, 3, {})};
  for (const OpCase& op_case : both)
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      const CaseReport report = check_forward(op_case, dtype, test_backend());
      CHECK_MESSAGE(report.passed(), report.failures);
    }
}

}  // namespace plexaura::testing::norms_test
