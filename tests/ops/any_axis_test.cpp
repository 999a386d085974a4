// Tests that the results of an op along an axis do not depend on the place of that axis: exchanging the axis with the
// last one, before and after the op, changes nothing. A table lists ops with an axis, composed ones too. The axis is each
// one of a value of rank 3.
// The last test names ops of ops.def with an axis that the table does not use.

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <set>

#include "core/autodiff/gradients.h"
#include "core/graph/graph.h"
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
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "core/ops/softmax.h"
#include "core/ops/statistics.h"
#include "core/ops/unary.h"
#include "core/ops/unfold.h"
#include "core/ops/vectors.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::any_axis_test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// An op along an axis, whose result has the axes of x.
struct AlongAxis {
  std::string op;
  std::function<Node(const Node& x, std::int64_t axis)> apply;
  std::int64_t rank = 3;  // number of axes of the value in which the op counts `axis` from the end
};

Node places(const Node& x) { return x.graph().constant(Tensor::of<std::int64_t>({3}, {1, 0, 1})); }
std::int64_t from_front(std::int64_t axis, std::int64_t rank) { return (axis + rank) % rank; }
std::int64_t extent_of(const Node& x, std::int64_t axis) { return x.shape()[from_front(axis + 3, 3)]; }
ReduceOptions kept(std::int64_t axis) { return {.axes = {axis}, .keepdims = true}; }
// Exchanges the axis with the last one.
Node permuted(const Node& x, std::int64_t axis) {
  std::vector<std::int64_t> order{0, 1, 2};
  order[static_cast<std::size_t>(from_front(axis + 3, 3))] = 2;
  order[2] = axis;
  return permute(x, order);
}
// Appends an axis: first x, then its squares.
Node with_squares(const Node& x) { return stack({x, square(x)}, 3); }
// Adds up the last axis and inserts an axis of extent 1. `axis` counts in a value of rank 4.
Node summed(const Node& y, std::int64_t axis) {
  return unsqueeze(sum(y, {.axes = {-1}}), from_front(axis, 4));
}
// The sums along an axis of a value to which an axis of extent 1 is added before that one.
Node sums_of_unsqueezed(const Node& x, std::int64_t axis) {
  return squeeze(cumsum(unsqueeze(x, axis), axis + 1), axis);
}
// squeeze() keeps the axis of x, and removes that of the sum.
Node unsqueezed_sum(const Node& x, std::int64_t axis) {
  return unsqueeze(squeeze(sum(squeeze(x, axis), kept(axis)), axis), axis);
}
// The sum of the squares of all windows.
Node folded(const Node& x, std::int64_t axis) {
  return fold(square(unfold(x, {.axis = axis, .size = 2})), extent_of(x, axis), {.axis = axis, .size = 2});
}
// The first element of an axis as the second one of three.
Node moved_slice(const Node& x, std::int64_t axis) {
  return slice_grad(slice(x, {.axis = axis, .stop = 1}), 3, {.axis = axis, .start = 1, .stop = 2});
}
// Gathered elements, added up at their places in an axis of 4.
Node scattered_rows(const Node& x, std::int64_t axis) {
  return gather_grad(gather(x, places(x), {.axis = axis}), places(x), 4, {.axis = axis});
}
// The second element of an axis, which is removed.
Node squares_of(const Node& stacked, std::int64_t axis) {
  return squeeze(slice(stacked, {.axis = axis, .start = 1}), axis);
}
// The first element of each window.
Node first_of_windows(const Node& windows) { return squeeze(slice(windows, {.axis = -1, .stop = 1}), -1); }

const std::vector<AlongAxis> ops{
    {"sum", [](auto& x, auto axis) { return sum(x, kept(axis)); }},
    {"mean", [](auto& x, auto axis) { return mean(x, kept(axis)); }},
    {"max", [](auto& x, auto axis) { return max(x, kept(axis)); }},
    {"min", [](auto& x, auto axis) { return min(x, kept(axis)); }},
    {"prod", [](auto& x, auto axis) { return prod(x, kept(axis)); }},
    {"var", [](auto& x, auto axis) { return var(x, {.axes = {axis}, .keepdims = true}); }},
    {"std_dev",
     [](auto& x, auto axis) { return std_dev(x, {.axes = {axis}, .keepdims = true, .correction = 0}); }},
    {"logsumexp", [](auto& x, auto axis) { return logsumexp(x, kept(axis)); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = 1, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = 3, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = infinity, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = -infinity, .axes = {axis}, .keepdims = true}); }},
    {"norm", [](auto& x, auto axis) { return norm(x, {.p = 0, .axes = {axis}, .keepdims = true}); }},
    {"any", [](auto& x, auto axis) { return any(gt(x, 1), kept(axis)); }},
    {"all", [](auto& x, auto axis) { return all(gt(x, 1), kept(axis)); }},
    {"argmax", [](auto& x, auto axis) { return argmax(x, axis, true); }},
    {"argmin", [](auto& x, auto axis) { return argmin(x, axis, true); }},
    {"softmax", [](auto& x, auto axis) { return softmax(x, axis); }},
    {"log_softmax", [](auto& x, auto axis) { return log_softmax(x, axis); }},
    {"cumsum", [](auto& x, auto axis) { return cumsum(x, axis); }},
    {"cumsum",
     [](auto& x, auto axis) { return cumsum(x, {.axis = axis, .exclusive = true, .reverse = true}); }},
    {"cumprod", [](auto& x, auto axis) { return cumprod(x, axis); }},
    {"cummax", [](auto& x, auto axis) { return cummax(x, axis).values; }},
    {"cummin", [](auto& x, auto axis) { return cummin(x, axis).values; }},
    {"argcummax", [](auto& x, auto axis) { return argcummax(x, axis); }},
    {"argcummin", [](auto& x, auto axis) { return argcummin(x, axis); }},
    {"linear_recurrence", [](auto& x, auto axis) { return linear_recurrence(x, square(x), {.axis = axis}); }},
    {"linear_recurrence",
     [](auto& x, auto axis) { return linear_recurrence(x, square(x), {.axis = axis, .reverse = true}); }},
    {"slice", [](auto& x, auto axis) { return slice(x, {.axis = axis, .start = 1}); }},
    {"slice_grad", [](auto& x, auto axis) { return moved_slice(x, axis); }},
    {"gather", [](auto& x, auto axis) { return gather(x, places(x), {.axis = axis}); }},
    {"gather_grad", [](auto& x, auto axis) { return scattered_rows(x, axis); }},
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
    {"concat",
     [](auto& x, auto axis) {
       return concat({x, square(x)}, axis);
     }},
    {"stack",
     [](auto& x, auto axis) {
       return squares_of(stack({x, square(x)}, axis), axis);
     },
     4},
    {"squeeze", [](auto& x, auto axis) { return unsqueezed_sum(x, axis); }},
    {"unsqueeze", [](auto& x, auto axis) { return sums_of_unsqueezed(x, axis); }, 4},
    {"transpose", [](auto& x, auto axis) { return transpose(cumsum(transpose(x, axis, 2), 2), 2, axis); }},
    {"permute", [](auto& x, auto axis) { return permuted(cumsum(permuted(x, axis), 2), axis); }},
    {"diagonal", [](auto& x, auto axis) { return summed(diagonal(with_squares(x), -1, axis, 3), axis); }, 4},
    {"diagonal", [](auto& x, auto axis) { return summed(diagonal(with_squares(x), 1, 3, axis), axis); }, 4},
    {"split", [](auto& x, auto axis) { return split(x, 1, axis)[1]; }},
    {"split_with_sizes",
     [](auto& x, auto axis) {
       return split_with_sizes(x, {1, extent_of(x, axis) - 1}, axis)[1];
     }},
    {"chunk", [](auto& x, auto axis) { return chunk(x, 2, axis)[1]; }},
    {"flip", [](auto& x, auto axis) { return flip(x, {axis}); }},
    {"roll", [](auto& x, auto axis) { return roll(x, {1}, {axis}); }},
    {"pad",
     [](auto& x, auto axis) {
       return pad(x, {{axis, 2, 1}}, {.value = 5});
     }},
    {"pad",
     [](auto& x, auto axis) {
       return pad(x, {{axis, 1, 1}}, {.mode = PadMode::reflect});
     }},
    {"pad",
     [](auto& x, auto axis) {
       return pad(x, {{axis, 2, 1}}, {.mode = PadMode::replicate});
     }},
    {"pad",
     [](auto& x, auto axis) {
       return pad(x, {{axis, 2, 1}}, {.mode = PadMode::circular});
     }},
    {"fold", [](auto& x, auto axis) { return folded(x, axis); }},
    {"unfold", [](auto& x, auto axis) { return first_of_windows(unfold(x, {.axis = axis, .size = 2})); }},
    {"cosine_similarity",
     [](auto& x, auto axis) { return unsqueeze(cosine_similarity(x, square(x), axis), axis); }},
};

bool has_axis(const Op& op) {
  const Description description = op.description();
  return std::ranges::any_of(
      description.fields(), [](const auto& field) { return field.first == "axis" || field.first == "axes"; });
}

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
  for (const AlongAxis& of : ops) {
    CAPTURE(of.op);
    Graph graph;
    const Node x = graph.input("x", values.type());
    // For each axis: the expected results, then those with the axis counted from the front and from the end.
    std::vector<Node> wanted;
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      const Node expected = transpose(of.apply(transpose(x, axis, 2), 2), axis, 2);
      for (const Node& y : {expected, of.apply(x, axis), of.apply(x, axis - of.rank)})
        for (const Node& result : results_of(y, x)) wanted.push_back(result);
    }
    const std::vector<Tensor> results = Runner(graph, wanted, test_backend())({values});
    const std::size_t of_axis = wanted.size() / 3;
    const std::size_t of_form = of_axis / 3;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::size_t axis = i / of_axis;
      CAPTURE(axis);
      check_close(results[i], results[axis * of_axis + i % of_form]);
    }
  }
}

TEST_CASE("ops refuse an axis before the first or after the last one") {
  for (const AlongAxis& of : ops)
    for (const std::int64_t axis : {-of.rank - 1, of.rank}) {
      CAPTURE(of.op);
      CAPTURE(axis);
      Graph graph;
      const Node x = graph.input("x", {DType::float32, {2, 3, 4}});
      const std::string error = user_error([&] { of.apply(x, axis); });
      const std::string rule =
          of.op == "permute"
              ? "axes must name each axis of the value once"
              : fmt::format("axis {} does not exist in a value of rank {}; name one from {} to {}", axis,
                            of.rank, -of.rank, of.rank - 1);
      CHECK_MESSAGE(contains(error, rule), error);
    }
}

TEST_CASE("the table has every op of ops.def with an axis") {
  std::set<std::string_view> used;
  for (const AlongAxis& of : ops) {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {2, 3, 4}});
    results_of(of.apply(x, 1), x);
    for (NodeId id = 0; id < graph.size(); ++id) used.insert(graph.record(id).op->name());
  }
  for (const OpCase& op_case : all_cases()) {
    const auto op = op_in(op_case, op_case.dtypes.front());
    if (op != nullptr && has_axis(*op))
      CHECK_MESSAGE(used.contains(op->name()),
                    fmt::format("{} has an axis, and no line in `ops`", op->name()));
  }
}

}  // namespace plexaura::testing::any_axis_test
