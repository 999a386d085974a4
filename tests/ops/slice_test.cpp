#include "core/ops/slice.h"

#include <doctest/doctest.h>
#include <limits>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::slice_test {

namespace {

using reference::at;
using reference::Index;

// Returns x with only these indices of an axis.
Tensor taken(const Tensor& x, std::size_t axis, const std::vector<std::int64_t>& indices) {
  std::vector<std::int64_t> extents = x.shape().extents();
  extents[axis] = static_cast<std::int64_t>(indices.size());
  Tensor y = reference::zeros(Shape(extents));
  reference::for_each_index(y.shape(), [&](const Index& index) {
    Index from = index;
    from[axis] = indices[static_cast<std::size_t>(index[axis])];
    at(y, index) = at(x, from);
  });
  return y;
}

Tensor spread(const Tensor& x, std::size_t axis, const std::vector<std::int64_t>& indices,
              std::int64_t extent) {
  std::vector<std::int64_t> extents = x.shape().extents();
  extents[axis] = extent;
  Tensor y = reference::zeros(Shape(extents));
  reference::for_each_index(x.shape(), [&](const Index& index) {
    Index to = index;
    to[axis] = indices[static_cast<std::size_t>(index[axis])];
    at(y, to) = at(x, index);
  });
  return y;
}

OpCase sliced(const std::string& name, Shape from, SliceOptions options, std::size_t axis,
              const std::vector<std::int64_t>& indices) {
  return {"slice, " + name,
          "slice",
          [=](Graph&, auto x) { return std::vector{slice(x[0], options)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{taken(x[0], axis, indices)}; }};
}

OpCase spread_out(const std::string& name, Shape from, std::int64_t extent, SliceOptions options,
                  std::size_t axis, const std::vector<std::int64_t>& indices) {
  return {"slice_grad, " + name,
          "slice_grad",
          [=](Graph&, auto x) { return std::vector{slice_grad(x[0], extent, options)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{spread(x[0], axis, indices, extent)}; }};
}

const Cases cases({
    sliced("rows", {5, 3}, {.start = 1, .stop = 4}, 0, {1, 2, 3}),
    sliced("all", {4, 3}, {}, 0, {0, 1, 2, 3}),
    sliced("every other column", {2, 7}, {.axis = 1, .step = 2}, 1, {0, 2, 4, 6}),
    sliced("steps of three from 1", {2, 9, 2}, {.axis = -2, .start = 1, .stop = 8, .step = 3}, 1, {1, 4, 7}),
    sliced("the last two", {2, 6}, {.axis = -1, .start = -2}, 1, {4, 5}),
    sliced("without the last", {6}, {.stop = -1}, 0, {0, 1, 2, 3, 4}),
    sliced("beyond both ends", {3, 2}, {.start = -9, .stop = 9}, 0, {0, 1, 2}),
    sliced("nothing", {3, 2}, {.start = 2, .stop = 1}, 0, {}),
    sliced("a step beyond the end", {5}, {.start = 3, .step = 7}, 0, {3}),
    sliced("channels of an image", {2, 20, 3, 3}, {.axis = 1, .start = 1, .stop = 18}, 1,
           {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}),
    sliced("backwards", {4, 3}, {.step = -1}, 0, {3, 2, 1, 0}),
    sliced("every other column, backwards", {2, 7}, {.axis = 1, .step = -2}, 1, {6, 4, 2, 0}),
    sliced("from 4 back to 2", {6, 2}, {.start = 4, .stop = 1, .step = -1}, 0, {4, 3, 2}),
    sliced("from the last but one, backwards by 3", {9}, {.start = -2, .stop = -9, .step = -3}, 0, {7, 4, 1}),
    sliced("backwards from beyond both ends", {3, 2}, {.start = 9, .stop = -9, .step = -1}, 0, {2, 1, 0}),
    sliced("backwards, nothing", {3, 2}, {.start = 1, .stop = 2, .step = -1}, 0, {}),
    sliced("backwards by as much as possible", {3, 2}, {.step = std::numeric_limits<std::int64_t>::min()}, 0,
           {2}),
    sliced("forwards by as much as possible", {3, 2}, {.step = std::numeric_limits<std::int64_t>::max()}, 0,
           {0}),
    sliced("backwards along an empty axis", {2, 0}, {.axis = 1, .step = -1}, 1, {}),
    spread_out("rows", {2, 3}, 5, {.start = 1, .stop = 3}, 0, {1, 2}),
    spread_out("steps", {2, 3}, 6, {.axis = -1, .start = -5, .step = 2}, 1, {1, 3, 5}),
    spread_out("backwards", {3, 2}, 6, {.start = 4, .step = -2}, 0, {4, 2, 0}),
    spread_out("nothing", {0, 2}, 3, {.start = 3}, 0, {}),
});

const WrongCases wrong({
    {"slice with a step of 0",
     "slice",
     [](Graph& graph) {
       slice(graph.input("x", {DType::float32, {2}}), {.step = 0});
     },
     {"the step must not be 0"}},
    {"slice along no axis",
     "slice",
     [](Graph& graph) {
       slice(graph.input("x", {DType::float32, {2}}), {.axis = 1});
     },
     {"axis 1 does not exist"}},
    {"slice_grad of another count",
     "slice_grad",
     [](Graph& graph) {
       slice_grad(graph.input("g", {DType::float32, {2}}), 5, {.start = 1});
     },
     {"4 elements of the slice along axis 0"}},
    {"slice_grad to less than nothing",
     "slice_grad",
     [](Graph& graph) {
       slice_grad(graph.input("g", {DType::float32, {2}}), -1, {});
     },
     {"extent must be 0 or more"}},
});

}  // namespace

TEST_CASE("slice: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("slice: what it refuses") { check_all(wrong); }

TEST_CASE("slice takes any dtype, and other indices are another op") {
  Graph graph;
  const Node numbers = graph.input("n", {DType::int64, {4}});
  const Node flags = cast(numbers, DType::boolean);
  const auto results = Runner(graph, {slice(numbers, {.start = 1, .step = 2}), slice(flags, {.stop = 2})},
                              test_backend())({Tensor::of<std::int64_t>({4}, {5, 0, 7, 8})});
  CHECK(results[0] == Tensor::of<std::int64_t>({2}, {0, 8}));
  CHECK(results[1].to_doubles() == std::vector<double>{1, 0});
  CHECK(!(SliceOp({.start = 1}) == SliceOp({.stop = 1})));
  CHECK(!(SliceOp({.axis = 1}) == SliceOp({.axis = 0})));
  CHECK(!(SliceOp({.step = 2}) == SliceOp(SliceOptions{})));
  CHECK(SliceOp({.start = 1, .step = 2}) == SliceOp({.start = 1, .step = 2}));
  CHECK(!(SliceGrad({{}, 3}) == SliceGrad({{}, 4})));
}

}  // namespace plexaura::testing::slice_test
