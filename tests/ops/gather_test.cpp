#include "core/ops/gather.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"
#include "tests/support/reference/access.h"

namespace plexaura::testing::gather_test {

namespace {

using reference::at;
using reference::Index;

// Calls body(index in x, index in the result) for every element of the result.
template <class Body>
void for_each_pair(const Tensor& indices, const Shape& result, std::size_t axis, const Body& body) {
  const auto count = static_cast<std::size_t>(indices.shape().rank());
  reference::for_each_index(result, [&](const Index& index) {
    const auto begin = index.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    Index from(index.begin(), begin);
    from.push_back(static_cast<std::int64_t>(at(indices, Index(begin, end))));
    from.insert(from.end(), end, index.end());
    body(from, index);
  });
}

Tensor gathered(const Tensor& x, const Tensor& indices, std::size_t axis) {
  std::vector<std::int64_t> extents = x.shape().extents();
  const auto place = extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(axis));
  extents.insert(place, indices.shape().extents().begin(), indices.shape().extents().end());
  Tensor y = reference::zeros(Shape(extents));
  for_each_pair(indices, y.shape(), axis,
                [&](const Index& from, const Index& to) { at(y, to) = at(x, from); });
  return y;
}

Tensor scattered(const Tensor& grad_out, const Tensor& indices, const Shape& x, std::size_t axis) {
  Tensor y = reference::zeros(x);
  for_each_pair(indices, grad_out.shape(), axis,
                [&](const Index& from, const Index& to) { at(y, from) += at(grad_out, to); });
  return y;
}

OpCase gather_case(const std::string& name, Shape x, Shape indices, std::int64_t axis,
                   std::size_t from_front) {
  const std::int64_t extent = x.extents()[from_front];
  return {"gather, " + name,
          "gather",
          [=](Graph&, auto of) { return std::vector{gather(of[0], of[1], {axis})}; },
          {{std::move(x)}, {std::move(indices), whole(0, extent), DType::int64}},
          [=](auto of) { return std::vector{gathered(of[0], of[1], from_front)}; }};
}

OpCase grad_case(const std::string& name, Shape grad_out, Shape indices, std::int64_t axis, Shape x,
                 std::size_t from_front) {
  const std::int64_t extent = x.extents()[from_front];
  return {"gather_grad, " + name,
          "gather_grad",
          [=](Graph&, auto of) { return std::vector{gather_grad(of[0], of[1], extent, {axis})}; },
          {{std::move(grad_out)}, {std::move(indices), whole(0, extent), DType::int64}},
          [=](auto of) { return std::vector{scattered(of[0], of[1], x, from_front)}; }};
}

// The rows are those without padding; the gradient is compared with differences elsewhere, since a padding row that
// gets none would differ from them.
OpCase padded(const std::string& name, Shape weights, Shape indices, std::int64_t padding) {
  const std::int64_t count = weights[0];
  OpCase op_case{"embedding with " + name,
                 "stop_gradient",
                 [=](Graph&, auto x) { return std::vector{embedding(x[0], x[1], padding)}; },
                 {{std::move(weights)}, {std::move(indices), whole(0, count), DType::int64}},
                 [](auto x) { return std::vector{gathered(x[0], x[1], 0)}; }};
  op_case.differentiable = false;
  return op_case;
}

const Cases cases({
    gather_case("rows", {4, 3}, {5}, 0, 0),
    gather_case("columns", {2, 4}, {3}, -1, 1),
    gather_case("more columns than one thread takes at once", {2, 3}, {300}, -1, 1),
    gather_case("more rows than one thread takes at once", {3, 2}, {300}, 0, 0),
    gather_case("in the middle, by a table", {2, 5, 3}, {2, 2}, 1, 1),
    gather_case("one row", {4, 3}, {}, 0, 0),
    gather_case("no rows", {4, 3}, {0}, 0, 0),
    gather_case("channels", {2, 17, 2, 2}, {19}, 1, 1),
    {"embedding",
     "gather",
     [](Graph&, auto x) { return std::vector{embedding(x[0], x[1])}; },
     {{{6, 70}}, {{2, 3}, whole(0, 6), DType::int64}},
     [](auto x) { return std::vector{gathered(x[0], x[1], 0)}; }},
    padded("a padding row", {6, 3}, {2, 3}, 1),
    padded("a padding row from the end", {2, 3}, {4}, -1),
    grad_case("rows", {5, 3}, {5}, 0, {4, 3}, 0),
    grad_case("columns", {2, 6}, {6}, -1, {2, 4}, 1),
    grad_case("one row", {1, 3}, {1}, 0, {1, 3}, 0),
    grad_case("no rows", {0, 3}, {0}, 0, {4, 3}, 0),
    grad_case("many columns", {2, 300}, {300}, -1, {2, 3}, 1),
    grad_case("wider than one piece", {7, 130}, {7}, 0, {3, 130}, 0),
    grad_case("in the middle, by a table", {2, 2, 2, 3}, {2, 2}, 1, {2, 5, 3}, 1),
});

const WrongCases wrong({
    {"gather by floats",
     "gather",
     [](Graph& graph) {
       gather(graph.input("x", {DType::float32, {2}}), graph.input("i", {DType::float32, {2}}));
     },
     {"indices must be int64", "cast()"}},
    {"gather along no axis",
     "gather",
     [](Graph& graph) {
       gather(graph.input("x", {DType::float32, {2}}), graph.input("i", {DType::int64, {2}}), {.axis = 1});
     },
     {"axis 1 does not exist"}},
    {"embedding of a cube",
     "embedding",
     [](Graph& graph) {
       embedding(graph.input("x", {DType::float32, {2, 3, 4}}), graph.input("i", {DType::int64, {2}}));
     },
     {"float32[2,3,4]", "two axes"}},
    {"embedding at floats",
     "embedding",
     [](Graph& graph) {
       embedding(graph.input("x", {DType::float32, {5, 2}}), graph.input("i", {DType::float32, {3}}));
     },
     {"indices must be int64, not float32", "cast()"}},
    {"embedding with its operands swapped",
     "embedding",
     [](Graph& graph) {
       embedding(graph.input("i", {DType::int64, {3}}), graph.input("x", {DType::float32, {5, 2}}));
     },
     {"the table comes first", "swap them"}},
    {"embedding with a padding that is no row",
     "embedding",
     [](Graph& graph) {
       embedding(graph.input("x", {DType::float32, {5, 2}}), graph.input("i", {DType::int64, {3}}), 5);
     },
     {"the padding must be a row from -5 to 4, not 5"}},
    {"gather_grad of another shape",
     "gather_grad",
     [](Graph& graph) {
       gather_grad(graph.input("g", {DType::float32, {3, 2}}), graph.input("i", {DType::int64, {2}}), 4);
     },
     {"axes of the indices"}},
    {"gather_grad along an axis from the end",
     "gather_grad",
     [](Graph& graph) {
       apply(std::make_shared<GatherGrad>(GatherGradOptions{.axis = -1, .extent = 4}),
             {graph.input("g", {DType::float32, {3, 2}}), graph.input("i", {DType::int64, {2}})});
     },
     {"in the place of the axis"}},
    {"gather_grad of integers",
     "gather_grad",
     [](Graph& graph) {
       gather_grad(graph.input("g", {DType::int64, {2, 2}}), graph.input("i", {DType::int64, {2}}), 4);
     },
     {"cast()"}},
    {"gather_grad beyond the axes",
     "gather_grad",
     [](Graph& graph) {
       gather_grad(graph.input("g", {DType::float32, {2, 2}}), graph.input("i", {DType::int64, {2}}), 4,
                   {.axis = 2});
     },
     {"axes of the indices"}},
});

std::string error_of_index(std::int64_t index) {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {4, 2}});
  const Node rows = gather(x, graph.input("i", {DType::int64, {3}}));
  Runner runner(graph, {rows}, test_backend());
  try {
    runner({Tensor(x.type()), Tensor::of<std::int64_t>({3}, {0, 3, index})});
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("gather: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("gather: what it refuses") { check_all(wrong); }

TEST_CASE("an index outside of the axis ends the run, and the message names it and the line") {
  CHECK(error_of_index(2).empty());
  for (const std::int64_t index : {-1, 4}) {
    const std::string text = error_of_index(index);
    for (const char* word : {"gather %2", "gather_test.cpp", "element 2 of the indices", "from 0 to 3"})
      CHECK_MESSAGE(text.find(word) != std::string::npos, text);
    CHECK(text.find("is " + std::to_string(index)) != std::string::npos);
  }
}

TEST_CASE("the gradient of an embedding adds up in float32 what 16 bits would lose") {
  Graph graph;
  const Node weights = graph.input("weights", {DType::bfloat16, {2, 1}});
  const Node indices = graph.input("indices", {DType::int64, {1000}});
  const Node grad = gradients(sum(embedding(weights, indices)), {weights})[0];
  const auto result = Runner(graph, {grad}, test_backend())({Tensor(weights.type()), Tensor(indices.type())});
  CHECK(result[0].to_doubles() == std::vector<double>{1000, 0});
}

TEST_CASE("the padding row of an embedding gets no gradient") {
  for (const std::int64_t padding : {1, -2}) {
    Graph graph;
    const Node weights = graph.input("weights", {DType::float32, {3, 2}});
    const Node indices = graph.input("indices", {DType::int64, {4}});
    const Node grad = gradients(sum(embedding(weights, indices, padding)), {weights})[0];
    const auto result = Runner(
        graph, {grad}, test_backend())({Tensor(weights.type()), Tensor::of<std::int64_t>({4}, {1, 2, 1, 2})});
    CHECK(result[0].to_doubles() == std::vector<double>{0, 0, 0, 0, 2, 2});
  }
}

TEST_CASE("an index of an empty axis is an error that says so") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {0, 2}});
  Runner runner(graph, {gather(x, graph.input("i", {DType::int64, {1}}))}, test_backend());
  const std::string text = error_text<Error>([&] {
    runner({Tensor(x.type()), Tensor::of<std::int64_t>({1}, {0})});
  });
  CHECK_MESSAGE(text.find("the axis is empty") != std::string::npos, text);
}

TEST_CASE("gathers along other axes are different ops") {
  CHECK(!(Gather({0}) == Gather({1})));
  CHECK(!(GatherGrad({0, 2}) == GatherGrad({1, 2})));
  CHECK(!(GatherGrad({0, 2}) == GatherGrad({0, 3})));
}

}  // namespace plexaura::testing::gather_test
