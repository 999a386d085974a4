#include "core/ops/indexing.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::indexing_test {

namespace {

using reference::at;
using reference::Index;

// The index of the element that `indices` name, for an index of the indices.
Index place_in(const Tensor& indices, const Index& index, std::size_t axis) {
  Index place = index;
  place[axis] = static_cast<std::int64_t>(at(indices, index));
  return place;
}

Shape with_extent(const Shape& shape, std::size_t axis, std::int64_t extent) {
  std::vector<std::int64_t> extents = shape.extents();
  extents[axis] = extent;
  return Shape(extents);
}

Tensor taken(const Tensor& x, const Tensor& indices, std::size_t axis) {
  const auto count = indices.shape()[static_cast<std::int64_t>(axis)];
  const Shape others = broadcast(with_extent(x.shape(), axis, 1), with_extent(indices.shape(), axis, 1));
  const Shape result = with_extent(others, axis, count);
  const Tensor places = reference::broadcast_to(indices, result);
  Tensor y = reference::zeros(result);
  reference::for_each_index(result, [&](const Index& index) {
    const Index place = place_in(places, index, axis);
    at(y, index) = at(x, reference::before_broadcasting(x.shape(), place));
  });
  return y;
}

OpCase take_case(const std::string& name, Shape x, Shape indices, std::int64_t axis, std::size_t from_front) {
  const std::int64_t extent = x.extents()[from_front];
  return {"take_along_axis, " + name,
          "take_along_axis",
          [=](Graph&, auto of) { return std::vector{take_along_axis(of[0], of[1], axis)}; },
          {{std::move(x)}, {std::move(indices), whole(0, extent), DType::int64}},
          [=](auto of) { return std::vector{taken(of[0], of[1], from_front)}; }};
}

Tensor scattered(const Tensor& x, const Tensor& indices, const Tensor& updates, std::size_t axis, bool adds) {
  Tensor y = reference::zeros(x.shape());
  reference::for_each_index(x.shape(), [&](const Index& index) { at(y, index) = at(x, index); });
  const auto own_axis = static_cast<std::int64_t>(axis);
  const std::int64_t count = broadcast(Shape{indices.shape()[own_axis]}, Shape{updates.shape()[own_axis]})[0];
  const Shape all = with_extent(x.shape(), axis, count);
  const Tensor places = reference::broadcast_to(indices, all);
  const Tensor values = reference::broadcast_to(updates, all);
  reference::for_each_index(all, [&](const Index& index) {
    double& element = at(y, place_in(places, index, axis));
    element = (adds ? element : 0) + at(values, index);
  });
  return y;
}

OpCase scatter_case(const std::string& name, const Shape& x, const Shape& indices, const Shape& updates,
                    std::int64_t axis, std::size_t from_front, bool adds) {
  const std::int64_t extent = x.extents()[from_front];
  return {(adds ? "scatter_add, " : "scatter, ") + name,
          adds ? "take_along_axis_grad" : "scatter",
          [=](Graph&, auto of) {
            return std::vector{adds ? scatter_add(of[0], of[1], of[2], axis)
                                    : scatter(of[0], of[1], of[2], axis)};
          },
          {{x}, {indices, whole(0, extent), DType::int64}, {updates}},
          [=](auto of) { return std::vector{scattered(of[0], of[1], of[2], from_front, adds)}; }};
}

const Cases cases({
    take_case("rows", {4, 3}, {2, 3}, 0, 0),
    take_case("columns", {3, 4}, {3, 6}, -1, 1),
    take_case("in the middle", {2, 5, 3}, {2, 4, 3}, 1, 1),
    take_case("indices for all rows", {3, 4}, {1, 2}, 1, 1),
    take_case("a row for all indices", {1, 4}, {3, 2}, 1, 1),
    take_case("both broadcast", {2, 1, 5, 1}, {1, 3, 2, 2}, 2, 2),
    take_case("one element", {1}, {1}, 0, 0),
    take_case("no indices", {3, 4}, {3, 0}, 1, 1),
    take_case("no rows", {0, 4}, {0, 2}, 1, 1),
    take_case("channels", {2, 17, 2, 2}, {2, 19, 2, 2}, 1, 1),
    {"index_select",
     "gather",
     [](Graph&, auto x) { return std::vector{index_select(x[0], -1, x[1])}; },
     {{{2, 5}}, {{2}, these({3, 1}), DType::int64}},
     [](auto x) {
       Tensor y = reference::zeros({2, 2});
       for (const std::int64_t row : {0, 1}) {
         at(y, row, 0) = at(x[0], row, 3);
         at(y, row, 1) = at(x[0], row, 1);
       }
       return std::vector{y};
     }},
    scatter_case("rows", {4, 3}, {2, 3}, {2, 3}, 0, 0, false),
    scatter_case("columns, repeated ones", {2, 3}, {2, 7}, {2, 7}, -1, 1, false),
    scatter_case("in the middle", {2, 5, 3}, {2, 4, 3}, {2, 4, 3}, 1, 1, false),
    scatter_case("indices for all rows", {3, 4}, {1, 2}, {3, 2}, 1, 1, false),
    scatter_case("one update for all", {3, 4}, {3, 2}, {1, 1}, 1, 1, false),
    scatter_case("no indices", {3, 4}, {3, 0}, {3, 0}, 1, 1, false),
    scatter_case("one element", {1}, {1}, {1}, 0, 0, false),
    scatter_case("rows", {4, 3}, {6, 3}, {6, 3}, 0, 0, true),
    scatter_case("columns", {2, 3}, {2, 7}, {2, 7}, 1, 1, true),
    scatter_case("wider than one piece", {2, 3, 70}, {2, 5, 70}, {2, 5, 70}, 1, 1, true),
    scatter_case("updates for one index", {3, 4}, {3, 1}, {3, 3}, 1, 1, true),
    scatter_case("no indices", {3, 4}, {3, 0}, {3, 0}, 1, 1, true),
    {"masked_fill",
     "where",
     [](Graph&, auto x) {
       return std::vector{masked_fill(x[0], gt(x[1], 0), 7), masked_fill(x[0], gt(x[1], 0), x[2])};
     },
     {{{3, 4}}, {{4}, these({1, -1, 2, -2}), DType::float64}, {{3, 1}}},
     [](auto x) {
       std::vector<Tensor> y{reference::zeros({3, 4}), reference::zeros({3, 4})};
       reference::for_each_index({3, 4}, [&](const Index& index) {
         const bool is_masked = index[1] % 2 == 0;
         at(y[0], index) = is_masked ? 7 : at(x[0], index);
         at(y[1], index) = is_masked ? at(x[2], index[0], 0) : at(x[0], index);
       });
       return y;
     }},
});

WrongCase of_operands(const std::string& name, const std::string& op,
                      std::function<void(const Node& x, const Node& indices)> build,
                      std::vector<std::string> words) {
  return {name, op,
          [build = std::move(build)](Graph& graph) {
            build(graph.input("x", {DType::float32, {3, 4}}), graph.input("i", {DType::int64, {3, 2}}));
          },
          std::move(words)};
}

const WrongCases wrong({
    of_operands("take_along_axis by floats", "take_along_axis",
                [](const Node& x, const Node&) { take_along_axis(x, x, 0); },
                {"indices must be int64, not float32", "cast()"}),
    of_operands("take_along_axis along no axis", "take_along_axis",
                [](const Node& x, const Node& i) { take_along_axis(x, i, 2); }, {"axis 2 does not exist"}),
    of_operands("take_along_axis of other rows", "take_along_axis",
                [](const Node& x, const Node& i) { take_along_axis(x, i, 0); },
                {"do not broadcast", "(axis -1: 4 and 2)"}),
    {"take_along_axis of another rank",
     "take_along_axis",
     [](Graph& graph) {
       take_along_axis(graph.input("x", {DType::float32, {3, 4}}), graph.input("i", {DType::int64, {3}}), 0);
     },
     {"as many axes as x (2, not 1)", "gather()"}},
    of_operands(
        "take_along_axis_grad of another shape", "take_along_axis_grad",
        [](const Node& x, const Node& i) {
          apply(std::make_shared<TakeAlongAxisGrad>(TakeAlongAxisGradOptions{{.axis = 0}, 4}), {x, i});
        },
        {"the updates must have the shape of the indices"}),
    of_operands("index_select by a matrix", "index_select",
                [](const Node& x, const Node& i) { index_select(x, 0, i); },
                {"index_select(float32[3,4], int64[3,2]): the indices must have one axis", "gather()"}),
    of_operands("scatter of another dtype", "scatter",
                [](const Node& x, const Node& i) { scatter(x, i, i, 1); },
                {"scatter(float32[3,4], int64[3,2], int64[3,2])", "the dtype of x", "cast()"}),
    of_operands("the op scatter of two dtypes", "scatter",
                [](const Node& x, const Node& i) {
                  apply(std::make_shared<Scatter>(AlongAxisOptions{.axis = 1}), {x, i, i});
                },
                {"one dtype", "cast()"}),
    of_operands("scatter of another extent", "scatter",
                [](const Node& x, const Node& i) { scatter(x, i, 0, 0); },
                {"must have the extents of x, or 1, along all axes but 0"}),
    of_operands("scatter of more updates than indices", "scatter",
                [](const Node& x, const Node& i) { scatter(x, i, x, 1); },
                {"one update for each index along axis 1"}),
    of_operands("scatter, indices of another rank", "scatter",
                [](const Node& x, const Node& i) { scatter(x, sum(i, {.axes = {1}}), 0, 1); },
                {"the indices must have as many axes as x"}),
    of_operands("scatter along no axis", "scatter",
                [](const Node& x, const Node& i) { scatter(x, i, 0, -3); }, {"axis -3 does not exist"}),
    of_operands("scatter_add of bools", "take_along_axis_grad",
                [](const Node& x, const Node& i) {
                  scatter_add(gt(x, 0), i, gt(take_along_axis(x, i, 1), 0), 1);
                },
                {"not for bool"}),
    of_operands("masked_fill by numbers", "masked_fill",
                [](const Node& x, const Node&) { masked_fill(x, x, 0); }, {"the mask must be bool"}),
    of_operands("masked_fill by a larger mask", "masked_fill",
                [](const Node& x, const Node&) { masked_fill(sum(x, {.axes = {0}}), gt(x, 0), 0); },
                {"must broadcast to the shape of x"}),
});

Tensor run_at(std::int64_t index, const std::function<Node(const Node& x, const Node& indices)>& build) {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {2, 3}});
  const Node indices = graph.input("i", {DType::int64, {2, 2}});
  return Runner(graph, {build(x, indices)}, test_backend())(
      {Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::of<std::int64_t>({2, 2}, {0, 2, 2, index})})[0];
}

}  // namespace

TEST_CASE("indexing: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("indexing: what it refuses") { check_all(wrong); }

TEST_CASE("an index outside of the axis is named by every op that reads or writes there") {
  const auto take = [](const Node& x, const Node& i) { return take_along_axis(x, i, 1); };
  const auto put = [](const Node& x, const Node& i) { return scatter(x, i, 0, 1); };
  const auto add_up = [](const Node& x, const Node& i) { return scatter_add(x, i, 1, 1); };
  for (const std::function<Node(const Node&, const Node&)>& build :
       {std::function<Node(const Node&, const Node&)>(take), {put}, {add_up}})
    for (const std::int64_t index : {-1, 3}) {
      CHECK(error_text<Error>([&] { run_at(2, build); }).empty());
      const std::string text = error_text<Error>([&] { run_at(index, build); });
      for (const std::string& words :
           {std::string("indexing_test.cpp"), "element 3 of the indices is " + std::to_string(index),
            std::string("from 0 to 2")})
        CHECK_MESSAGE(text.find(words) != std::string::npos, text);
    }
}

TEST_CASE("scatter takes the last of repeated indices, and scatter_add all of them") {
  CHECK(run_at(2, [](const Node& x, const Node& i) {
          return scatter(x, i, take_along_axis(x, i, 1) * 10, 1);
        }) == Tensor::of<float>({2, 3}, {10, 2, 30, 4, 5, 60}));
  CHECK(run_at(2, [](const Node& x, const Node& i) { return scatter_add(x, i, 10, 1); }) ==
        Tensor::of<float>({2, 3}, {11, 2, 13, 4, 5, 26}));
}

TEST_CASE("scatter_add of integers counts exactly and wraps around") {
  Graph graph;
  const Node x = graph.input("x", {DType::uint8, {2}});
  const Node indices = graph.input("i", {DType::int64, {3}});
  const auto result = Runner(graph, {scatter_add(x, indices, 100, 0)}, test_backend())(
      {Tensor::of<std::uint8_t>({2}, {200, 7}), Tensor::of<std::int64_t>({3}, {0, 1, 0})});
  CHECK(result[0] == Tensor::of<std::uint8_t>({2}, {144, 107}));
}

TEST_CASE("scatter_add and the gradient of take_along_axis add 16 bits up in float32") {
  Graph graph;
  const Node x = graph.input("x", {DType::bfloat16, {2}});
  const Node indices = graph.input("indices", {DType::int64, {1000}});
  const Node grad = gradients(sum(take_along_axis(x, indices, 0)), {x})[0];
  const auto results = Runner(graph, {grad, scatter_add(x, indices, 1, 0)},
                              test_backend())({Tensor(x.type()), Tensor(indices.type())});
  for (const Tensor& result : results) CHECK(result.to_doubles() == std::vector<double>{1000, 0});
}

TEST_CASE("take_along_axis and scatter move bools") {
  Graph graph;
  const Node x = graph.input("x", {DType::boolean, {3}});
  const Node indices = graph.input("i", {DType::int64, {2}});
  const Node taken_bools = take_along_axis(x, indices, 0);
  const auto results = Runner(graph, {taken_bools, scatter(x, indices, taken_bools, -1)}, test_backend())(
      {Tensor::of<double>({3}, {1, 0, 1}).cast(DType::boolean), Tensor::of<std::int64_t>({2}, {1, 2})});
  CHECK(results[0].to_doubles() == std::vector<double>{0, 1});
  CHECK(results[1].to_doubles() == std::vector<double>{1, 0, 1});
}

}  // namespace plexaura::testing::indexing_test
