// What an op computes along an axis does not depend on the place of that axis: the axis may be exchanged with the last
// one before and after. This covers every op with an axis, composed ones too, on each axis of a value of rank 3.

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/ops/arrange.h"
#include "core/ops/axes.h"
#include "core/ops/binary.h"
#include "core/ops/concat.h"
#include "core/ops/cummax.h"
#include "core/ops/cumsum.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/ordering.h"
#include "core/ops/recurrence.h"
#include "core/ops/reduce.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"
#include "core/ops/vectors.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/support/backend.h"

namespace plexaura::testing::any_axis_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// An op along an axis, whose result has the axes of x.
struct AlongAxis {
  std::string op;
  std::function<Node(const Node& x, std::int64_t axis)> apply;
};

Node places(const Node& x) { return x.graph().constant(Tensor::of<std::int64_t>({3}, {1, 0, 1})); }
// The first element of each window.
Node first_of_windows(const Node& windows) { return squeeze(slice(windows, {.axis = -1, .stop = 1}), -1); }

// clang-format off
const std::vector<AlongAxis> ops{
    {"sum", [](auto& x, auto axis) { return sum(x, {.axes = {axis}, .keepdims = true}); }},
    {"mean", [](auto& x, auto axis) { return mean(x, {.axes = {axis}, .keepdims = true}); }},
    {"max", [](auto& x, auto axis) { return max(x, {.axes = {axis}, .keepdims = true}); }},
    {"min", [](auto& x, auto axis) { return min(x, {.axes = {axis}, .keepdims = true}); }},
    {"prod", [](auto& x, auto axis) { return prod(x, {.axes = {axis}, .keepdims = true}); }},
    {"var", [](auto& x, auto axis) { return var(x, {.axes = {axis}, .keepdims = true}); }},
    {"std_dev", [](auto& x, auto axis) { return std_dev(x, {.axes = {axis}, .keepdims = true, .correction = 0}); }},
    {"logsumexp", [](auto& x, auto axis) { return logsumexp(x, {.axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = 1, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = 3, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = infinity, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = -infinity, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = 0, .axes = {axis}, .keepdims = true}); }},
    {"any", [](auto& x, auto axis) { return any(gt(x, 1), {.axes = {axis}, .keepdims = true}); }},
    {"all", [](auto& x, auto axis) { return all(gt(x, 1), {.axes = {axis}, .keepdims = true}); }},
    {"argmax", [](auto& x, auto axis) { return argmax(x, axis, true); }},
    {"argmin", [](auto& x, auto axis) { return argmin(x, axis, true); }},
    {"softmax", [](auto& x, auto axis) { return softmax(x, axis); }},
    {"log_softmax", [](auto& x, auto axis) { return log_softmax(x, axis); }},
    {"cumsum", [](auto& x, auto axis) { return cumsum(x, axis); }},
    {"cumsum", [](auto& x, auto axis) { return cumsum(x, {.axis = axis, .exclusive = true, .reverse = true}); }},
    {"cumprod", [](auto& x, auto axis) { return cumprod(x, axis); }},
    {"cummax", [](auto& x, auto axis) { return cummax(x, axis).values; }},
    {"cummin", [](auto& x, auto axis) { return cummin(x, axis).values; }},
    {"argcummax", [](auto& x, auto axis) { return argcummax(x, axis); }},
    {"argcummin", [](auto& x, auto axis) { return argcummin(x, axis); }},
    {"linear_recurrence", [](auto& x, auto axis) { return linear_recurrence(x, square(x), {.axis = axis}); }},
    {"linear_recurrence", [](auto& x, auto axis) { return linear_recurrence(x, square(x), {.axis = axis, .reverse = true}); }},
    {"slice", [](auto& x, auto axis) { return slice(x, {.axis = axis, .start = 1}); }},
    {"slice_grad", [](auto& x, auto axis) { return slice_grad(slice(x, {.axis = axis, .stop = 1}), 3, {.axis = axis, .start = 1, .stop = 2}); }},
    {"gather", [](auto& x, auto axis) { return gather(x, places(x), {.axis = axis}); }},
    {"gather_grad", [](auto& x, auto axis) { return gather_grad(gather(x, places(x), {.axis = axis}), places(x), 4, {.axis = axis}); }},
    {"index_select", [](auto& x, auto axis) { return index_select(x, axis, places(x)); }},
    {"take_along_axis", [](auto& x, auto axis) { return take_along_axis(x, argsort(x, axis), axis); }},
    {"scatter", [](auto& x, auto axis) { return scatter(x, argsort(x, axis), square(x), axis); }},
    {"scatter_add", [](auto& x, auto axis) { return scatter_add(x, argsort(x, axis), square(x), axis); }},
    {"argsort", [](auto& x, auto axis) { return argsort(x, axis); }},
    {"sort", [](auto& x, auto axis) { return sort(x, axis).values; }},
    {"sort", [](auto& x, auto axis) { return sort(x, axis, true).values; }},
    {"topk", [](auto& x, auto axis) { return topk(x, 2, axis).values; }},
    {"topk", [](auto& x, auto axis) { return topk(x, 2, axis, false).indices; }},
    {"kthvalue", [](auto& x, auto axis) { return kthvalue(x, 2, axis, true).values; }},
    {"median", [](auto& x, auto axis) { return median(x, axis, true).values; }},
    {"quantile", [](auto& x, auto axis) { return quantile(x, 0.3, {.axis = axis, .keepdims = true}); }},
    {"concat", [](auto& x, auto axis) { return concat({x, square(x)}, axis); }},
    {"stack", [](auto& x, auto axis) { return squeeze(slice(stack({x, square(x)}, axis), {.axis = axis, .start = 1}), axis); }},
    {"split", [](auto& x, auto axis) { return split(x, 1, axis)[1]; }},
    {"split_with_sizes", [](auto& x, auto axis) { return split_with_sizes(x, {1, x.shape()[(axis + 3) % 3] - 1}, axis)[1]; }},
    {"chunk", [](auto& x, auto axis) { return chunk(x, 2, axis)[1]; }},
    {"flip", [](auto& x, auto axis) { return flip(x, {axis}); }},
    {"roll", [](auto& x, auto axis) { return roll(x, {1}, {axis}); }},
    {"pad", [](auto& x, auto axis) { return pad(x, {{axis, 2, 1}}, {.value = 5}); }},
    {"pad", [](auto& x, auto axis) { return pad(x, {{axis, 1, 1}}, {.mode = PadMode::reflect}); }},
    {"pad", [](auto& x, auto axis) { return pad(x, {{axis, 2, 1}}, {.mode = PadMode::replicate}); }},
    {"pad", [](auto& x, auto axis) { return pad(x, {{axis, 2, 1}}, {.mode = PadMode::circular}); }},
    {"unfold", [](auto& x, auto axis) { return first_of_windows(unfold(x, {.axis = axis, .size = 2})); }},
    {"cosine_similarity", [](auto& x, auto axis) { const Node y = cosine_similarity(x, square(x), axis); return unsqueeze(y, axis); }},
};
// clang-format on

// Ops with a different axis in the same place of the result.
bool counts_in_result(std::string_view op) { return op == "stack"; }

// The result and, if it has one, the gradient of the sum of its squares.
std::vector<Node> results_of(const Node& y, const Node& x) {
  if (!is_floating(y.dtype())) return {y};
  const Node gradient = gradients_or_empty(sum(square(y)), std::vector{x})[0];
  return gradient.is_empty() ? std::vector{y} : std::vector{y, gradient};
}

void check_close(const Tensor& actual, const Tensor& expected) {
  REQUIRE(actual.type() == expected.type());
  const std::vector<double> a = actual.to_doubles();
  const std::vector<double> e = expected.to_doubles();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(e[i]).epsilon(1e-4));
}

}  // namespace

TEST_CASE("ops compute the same along each axis") {
  Random random(3);
  const Tensor values = random.tensor({DType::float32, {2, 3, 4}}, 0.5, 2);
  for (const AlongAxis& of : ops)
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      CAPTURE(of.op);
      CAPTURE(axis);
      Graph graph;
      const Node x = graph.input("x", values.type());
      const Node with_axis_last = transpose(x, axis, 2);
      const Node expected = transpose(of.apply(with_axis_last, 2), axis, 2);
      std::vector<Node> wanted;
      for (const Node& y : {expected, of.apply(x, axis), of.apply(x, axis - 3 - counts_in_result(of.op))})
        for (const Node& result : results_of(y, x)) wanted.push_back(result);
      const std::vector<Tensor> results = Runner(graph, wanted, test_backend())({values});
      const std::size_t of_each = wanted.size() / 3;
      for (std::size_t i = of_each; i < results.size(); ++i) check_close(results[i], results[i % of_each]);
    }
}

TEST_CASE("ops refuse an axis before the first or after the last one") {
  for (const AlongAxis& of : ops)
    for (const std::int64_t axis : {-4, 3}) {
      if (counts_in_result(of.op)) continue;
      CAPTURE(of.op);
      CAPTURE(axis);
      Graph graph;
      const Node x = graph.input("x", {DType::float32, {2, 3, 4}});
      std::string error;
      try {
        of.apply(x, axis);
      } catch (const UserError& thrown) {
        error = thrown.what();
      }
      const std::string rule =
          fmt::format("axis {} does not exist in a value of rank 3; name one from -3 to 2", axis);
      CHECK_MESSAGE(error.find(rule) != std::string::npos, error);
    }
}

}  // namespace plexaura::testing::any_axis_test
