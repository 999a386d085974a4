#include "core/ops/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/pattern.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::batch_norm_test {

namespace {

const std::vector<DType> every_float = OpCase().dtypes;

// Scale, shift and statistics of a 16-bit input are float32.
Node wide(const Node& node) { return node.dtype() == DType::float64 ? node : cast(node, DType::float32); }

std::vector<Node> outputs(const BatchNormResult& result) { return {result.y, result.mean, result.variance}; }

OpCase of_moments(const std::string& name, Shape x, double epsilon = 1e-2) {
  return {"moments, " + name,
          "moments",
          [=](Graph&, auto in) {
            const MomentsResult result = moments(in[0], {.epsilon = epsilon});
            return std::vector{result.mean, result.variance, result.inverse};
          },
          {{std::move(x), between(-1, 2)}},
          [=](auto in) { return reference::moments(in[0], epsilon); },
          true,
          true,
          every_float,
          {.float32 = 5e-6}};
}

// Returns the moments of nothing: the mean and the variance 0.
OpCase of_no_moments() {
  OpCase op_case = of_moments("no samples", {0, 3, 2});
  op_case.expected = [](auto) {
    Tensor inverse(TensorType{DType::float64, {3}});
    std::ranges::fill(inverse.as<double>(), 10.0);
    return std::vector{Tensor(inverse.type()), Tensor(inverse.type()), inverse};
  };
  return op_case;
}

OpCase of_moments_grad(const std::string& name, const Shape& x) {
  const CaseInput channels{{x[1]}, between(0.5, 1.5)};
  return {"moments_grad, " + name,
          "moments_grad",
          [](Graph&, auto in) {
            return std::vector{moments_grad(in[0], wide(in[1]), wide(in[2]), wide(in[3]), wide(in[4]))};
          },
          {{x}, channels, channels, channels, channels},
          [](auto in) { return std::vector{reference::moments_grad(in[0], in[1], in[2], in[3], in[4])}; }};
}

OpCase normalised(const std::string& name, const Shape& x) {
  const CaseInput channels{{x[1]}, away_from_zero(0.5)};
  return {"normalise, " + name,
          "normalise",
          [](Graph&, auto in) {
            return std::vector{normalise(in[0], wide(in[1]), wide(in[2]), wide(in[3]), wide(in[4]))};
          },
          {{x}, channels, channels, channels, channels},
          [](auto in) { return std::vector{reference::normalise(in[0], in[1], in[2], in[3], in[4])}; }};
}

OpCase normalised_grad(const std::string& name, const Shape& x) {
  const CaseInput channels{{x[1]}, away_from_zero(0.5)};
  return {"normalise_grad, " + name,
          "normalise_grad",
          [](Graph&, auto in) -> std::vector<Node> {
            const NormaliseGradResult grads =
                normalise_grad(in[0], wide(in[1]), wide(in[2]), wide(in[3]), in[4]);
            return {grads.x, grads.scale, grads.shift, grads.mean, grads.inverse};
          },
          {{x}, channels, channels, channels, {x}},
          [](auto in) { return reference::normalise_grad(in[0], in[1], in[2], in[3], in[4]); },
          true,
          true,
          every_float,
          {.float32 = 5e-6}};
}

// Computes batch norm as a whole and its gradients; these include the gradient through the moments.
OpCase trained(const std::string& name, const Shape& x) {
  const CaseInput channels{{x[1]}, away_from_zero(0.5)};
  return {"normalise_grad, of batch norm of " + name,
          "normalise_grad",
          [](Graph&, auto in) -> std::vector<Node> {
            const Node scale = wide(in[1]);
            const Node shift = wide(in[2]);
            return gradients(sum(batch_norm(in[0], scale, shift, {.epsilon = 1e-2}).y * in[3]),
                             {in[0], scale, shift});
          },
          {{x, between(-1, 2)}, channels, channels, {x}},
          [](auto in) { return reference::batch_norm_grad(in[0], in[1], in[3], 1e-2); },
          true,
          true,
          every_float,
          {.float32 = 1e-5, .bfloat16 = 6e-2, .float16 = 1e-2}};
}

// The gradient is 0 for every input, so differences of it contain only rounding errors.
OpCase constant_one(OpCase op_case) {
  op_case.differentiable = false;
  return op_case;
}

const Cases cases({
    of_moments("images", {2, 3, 3, 2}),
    of_moments("rows", {6, 4}, 0.5),
    of_moments("sequences", {3, 2, 4}),
    of_moments("17 channels", {2, 17, 2, 3}),
    of_moments("more rows than a block sums up", {4, 2, 8, 8}),
    of_moments("more channels than a block sums up", {2, 35, 2, 1}),
    of_moments("one element a channel", {1, 3, 1, 1}),
    of_no_moments(),
    of_moments_grad("images", {2, 3, 3, 2}),
    of_moments_grad("rows", {5, 17}),
    of_moments_grad("no samples", {0, 3, 2}),
    normalised("images", {2, 3, 3, 2}),
    normalised("rows", {5, 17}),
    normalised("no samples", {0, 3, 2}),
    normalised_grad("images", {2, 3, 3, 2}),
    normalised_grad("17 channels", {2, 17, 2, 3}),
    normalised_grad("no samples", {0, 3, 2}),
    normalised_grad("more rows than a block sums up", {4, 2, 8, 8}),
    normalised_grad("more channels than a block sums up", {2, 35, 2, 1}),
    trained("images", {2, 3, 3, 2}),
    trained("rows", {5, 2}),
    constant_one(trained("one element a channel", {1, 3, 1, 1})),
});

Node input(Graph& graph, const char* name, Shape shape) {
  return graph.input(name, {DType::float32, std::move(shape)});
}

const WrongCases wrong({
    {"moments, one axis",
     "moments",
     [](Graph& graph) { moments(input(graph, "x", {3})); },
     {"two to four axes"}},
    {"moments, epsilon",
     "moments",
     [](Graph& graph) {
       moments(input(graph, "x", {2, 3}), {.epsilon = 0});
     },
     {"epsilon must be above 0"}},
    {"moments, a negative epsilon",
     "moments",
     [](Graph& graph) {
       moments(input(graph, "x", {2, 3}), {.epsilon = -1});
     },
     {"epsilon must be above 0, not -1"}},
    {"normalise, scale shaped like a batch",
     "normalise",
     [](Graph& graph) {
       batch_norm(input(graph, "x", {2, 3, 4, 4}), input(graph, "s", {2, 3, 1, 1}), input(graph, "b", {3}));
     },
     {"float32[3]", "each channel"}},
    {"normalise_grad, another shape",
     "normalise_grad",
     [](Graph& graph) {
       const Node c = input(graph, "c", {3});
       normalise_grad(input(graph, "x", {2, 3}), c, c, c, input(graph, "g", {3, 3}));
     },
     {"type and shape of the input"}},
    {"moments_grad, another count of channels",
     "moments_grad",
     [](Graph& graph) {
       const Node c = input(graph, "c", {3});
       moments_grad(input(graph, "x", {2, 3}), c, c, c, input(graph, "d", {2}));
     },
     {"float32[3]", "each channel"}},
});

}  // namespace

TEST_CASE("batch norm: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("batch norm: what it refuses") { check_all(wrong); }

TEST_CASE("batch norm by hand") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 2}});  // a channel with 1 and 5, another with 4 and 4
  const Node scale = graph.input("scale", {DType::float64, {2}});
  const Node shift = graph.input("shift", {DType::float64, {2}});
  const BatchNormResult result = batch_norm(x, scale, shift, {.epsilon = 5});
  const auto results = Runner(graph, outputs(result), test_backend())(
      {Tensor::of<double>({2, 2}, {1, 4, 5, 4}), Tensor::of<double>({2}, {6, 7}),
       Tensor::of<double>({2}, {0.5, -1})});
  check_close(results[0], {-3.5, -1, 4.5, -1});  // 6 (1 - 3) / sqrt(4 + 5) + 0.5, ...
  check_close(results[1], {3, 4});
  check_close(results[2], {4, 0});
}

TEST_CASE("batch norm agrees with figures of PyTorch, second derivatives included") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3, 2, 2}});
  const Node scale = graph.input("scale", {DType::float64, {2}});
  const Node shift = graph.input("shift", {DType::float64, {2}});
  const Node y = batch_norm(x, scale, shift).y;
  const Node g = graph.input("g", y.type());
  const Node v = graph.input("v", y.type());
  const std::vector<Node> first = gradients(sum(y * g), {x, scale, shift});
  const std::vector<Node> second = gradients(sum(first[0] * v), {x, scale});
  const auto results = Runner(graph, {y, first[0], first[1], first[2], second[0], second[1]}, test_backend())(
      {pattern(x.shape()), Tensor::of<double>({2}, {1.5, -0.5}), Tensor::of<double>({2}, {0.25, 1.0}),
       pattern(x.shape(), 3, 2, 7, 3, 2), pattern(x.shape(), 5, 1, 13, 6, 8)});
  check_close(results[0], {-0.6958825279182858, 2.3600456392023297, 0.7148273856269559, 1.47528769062174,
                           1.9234844724708133, 0.17723980554474725, 1.665402766870436, 0.3345972331295639,
                           -0.2593213611867693, -2.005566028112835, 0.52471230937826, 1.285172614373044});
  check_close(results[1],
              {-0.3595239771474893, 1.5408108465669659, 0.5253018552242055, -0.15729058176749075,
               -2.7220819383661077, 0.30816059155135966, -0.8032263816371548, -0.08397730752342661,
               2.157124140859518, -0.9244896634642461, -0.7299131073930908, 1.2491055230969577});
  check_close(results[2], {1.2126699075875458, -2.3764384531087});
  check_close(results[3], {-1.0, -0.5});
  check_close(results[4],
              {-0.05770262914528048, 0.2706313363688852, -0.35564953582973946, 0.07942494452208348,
               0.6196344051052679, 0.14410864304908078, 0.24831892980072715, 0.29147323768900524,
               -0.32658496962363137, -0.650086785754322, 0.46036722296764887, -0.7239347991497251});
  check_close(results[5], {-1.2540411472671038, 0.827997879396378});
}

TEST_CASE("running statistics with an epsilon of 0 are refused") {
  Graph graph;
  const Node c = input(graph, "c", {3});
  const std::string text = user_error([&] {
    batch_norm_inference(input(graph, "x", {2, 3}), c, c, c, c, {.epsilon = 0});
  });
  CHECK(text.find("batch_norm_test.cpp") != std::string::npos);
  CHECK(text.find("epsilon must be above 0, not 0") != std::string::npos);
}

TEST_CASE("batch norm by the moments of one element per channel is found, and no other") {
  const auto refusal = [](const Shape& shape) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, shape});
    const Node scale = graph.input("scale", {DType::float32, {shape[1]}});
    batch_norm(x, scale, scale);
    return user_error([&] { check_batch_norms(graph, "do so"); });
  };
  const std::string text = refusal({1, 3, 1});
  CHECK(text.find("batch_norm_test.cpp") != std::string::npos);
  CHECK(text.ends_with(
      ": batch_norm(float32[1,3,1]) has one element per channel, which is its own mean, so that "
      "nothing before it would be trained; do so"));
  CHECK(refusal({2, 3}) == "");
  CHECK(refusal({1, 3, 2}) == "");
  CHECK(refusal({0, 3}) == "");
  CHECK(refusal({1, 0}) == "");
  CHECK(refusal({3, 0}) == "");
}

TEST_CASE("moments that ranks join, and those that are given, may be of one element each") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {1, 3}});
  const Node scale = graph.input("scale", {DType::float32, {3}});
  const MomentsResult own = moments(x);
  normalise(x, scale, scale, all_reduce_sum(own.mean), own.inverse);
  batch_norm_inference(x, scale, scale, scale, scale);
  CHECK(user_error([&] { check_batch_norms(graph, ""); }) == "");
}

TEST_CASE("gradients pass the mean and the variance of batch norm") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {2, 1}});  // 1 and 5: mean 3, variance 4
  const MomentsResult of = moments(x, {.epsilon = 5});
  std::vector<Node> wanted;
  for (const Node& value : {of.mean, of.variance, of.inverse})
    wanted.push_back(gradients(sum(value), {x})[0]);
  wanted.push_back(gradients(sum(of.mean + of.variance + of.inverse), {x})[0]);
  const auto results = Runner(graph, wanted, test_backend())({Tensor::of<double>({2, 1}, {1, 5})});
  check_close(results[0], {0.5, 0.5});
  check_close(results[1], {-2, 2});              // 2 (x - 3) / 2
  check_close(results[2], {1. / 27, -1. / 27});  // (4 + 5)^-1.5 / -2 times that
  check_close(results[3], {-1.5 + 1. / 27, 2.5 - 1. / 27});
}

TEST_CASE("batch norm of 16-bit inputs keeps its statistics in float32") {
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {4, 2}});
  const Node scale = graph.input("scale", {DType::float32, {2}});
  const BatchNormResult result = batch_norm(x, scale, scale);
  CHECK(result.y.dtype() == DType::bfloat16);
  CHECK(result.mean.type() == TensorType{DType::float32, {2}});
  const std::vector<Node> first = gradients(sum(result.y), {x, scale});
  const std::vector<Node> second = gradients(sum(first[0] * first[0]), {x, scale});
  CHECK(second[0].dtype() == DType::bfloat16);
  CHECK(second[1].dtype() == DType::float32);
}

TEST_CASE("no gradient passes the ReLU behind batch norm where it has no number") {
  const Shape shape{3, 2, 4, 4};
  for (const DType dtype : {DType::float64, DType::float32})
    for (const bool adds : {false, true})
      for (const bool keeps_result : {false, true}) {
        Graph graph;
        const Node x = graph.input("x", {dtype, shape});
        const Node scale = graph.input("scale", {dtype, {2}});
        const Node shift = graph.input("shift", {dtype, {2}});
        const Node side = graph.input("side", {dtype, shape});
        const Node normal = batch_norm(x, scale, shift).y;
        const Node y = relu(adds ? normal + side : normal);
        std::vector<Node> outputs = gradients(sum(y), {x, shift});
        if (adds) outputs.push_back(gradients(sum(y), {side})[0]);
        if (keeps_result) outputs.push_back(y);
        Tensor values = pattern(shape);
        values.as<double>()[5] = std::nan("");  // in the first channel
        const auto results = Runner(graph, outputs, test_backend())(
            {values.cast(dtype), Tensor::of<double>({2}, {1, 1}).cast(dtype),
             Tensor::of<double>({2}, {3, 3}).cast(dtype), pattern(shape, 0, 5).cast(dtype)});
        CHECK(results[1].to_doubles() == std::vector<double>{0, 48});
        if (!adds) continue;
        const std::vector<double> of_side = results[2].to_doubles();
        for (std::size_t i = 0; i < of_side.size(); ++i) CHECK(of_side[i] == (i / 16 % 2 == 0 ? 0 : 1));
      }
}

TEST_CASE("batch norm of no samples has mean and variance 0, so that running statistics stay finite") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {0, 2, 3, 3}});
  const Node scale = graph.input("scale", {DType::float32, {2}});
  const BatchNormResult result = batch_norm(x, scale, scale);
  const std::vector<Node> grads = gradients(sum(result.y), {scale});
  const auto results = Runner(graph, {result.mean, result.variance, grads[0]},
                              test_backend())({Tensor(x.type()), Tensor::of<float>({2}, {1, 1})});
  for (const Tensor& value : results) CHECK(value.to_doubles() == std::vector<double>{0, 0});
}

TEST_CASE("the variance of batch norm does not cancel far from zero") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {4, 1}});
  const Node scale = graph.input("scale", {DType::float64, {1}});
  const Node variance = batch_norm(x, scale, scale).variance;
  const auto results = Runner(graph, {variance}, oracle())(
      {Tensor::of<double>({4, 1}, {1e8 + 1, 1e8 + 2, 1e8 + 3, 1e8 + 4}), Tensor::of<double>({1}, {1})});
  check_close(results[0], {1.25});
}

}  // namespace plexaura::testing::batch_norm_test
