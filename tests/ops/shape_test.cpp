#include "core/ops/shape.h"

#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::shape_test {

namespace {

// `to` may have an open extent; `expected` is the resulting shape.
OpCase reshaped(std::string name, Shape from, std::vector<std::int64_t> to, const Shape& expected) {
  return {std::move(name),
          "reshape",
          [=](Graph&, auto x) { return std::vector{reshape(x[0], to)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{x[0].reshaped(expected)}; }};
}

OpCase stretched(std::string name, Shape from, const Shape& to) {
  return {std::move(name),
          "broadcast_to",
          [=](Graph&, auto x) { return std::vector{broadcast_to(x[0], to)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{reference::broadcast_to(x[0], to)}; }};
}

OpCase permuted(std::string name, Shape from, std::vector<std::int64_t> axes) {
  return {std::move(name),
          "permute",
          [=](Graph&, auto x) { return std::vector{permute(x[0], axes)}; },
          {{std::move(from)}},
          [=](auto x) { return std::vector{reference::permute(x[0], axes)}; }};
}

const Cases cases({
    reshaped("reshape", {3, 4}, {2, 6}, {2, 6}),
    reshaped("reshape with an open extent", {3, 4}, {-1, 2}, {6, 2}),
    reshaped("reshape to a scalar", {1, 1}, {}, {}),
    reshaped("reshape of nothing", {0, 4}, {2, 0}, {2, 0}),
    {"flatten",
     "reshape",
     [](Graph&, auto x) { return std::vector{flatten(x[0])}; },
     {{{2, 3, 4}}},
     [](auto x) {
       return std::vector{x[0].reshaped({2, 12})};
     }},
    {"flatten of a scalar",
     "reshape",
     [](Graph&, auto x) { return std::vector{flatten(x[0])}; },
     {{{}}},
     [](auto x) {
       return std::vector{x[0].reshaped({1, 1})};
     }},
    stretched("broadcast_to", {3, 1}, {2, 3, 4}),
    stretched("broadcast_to, from a scalar", {}, {2, 3}),
    stretched("broadcast_to, to nothing", {1, 3}, {0, 3}),
    permuted("permute", {2, 3, 4}, {2, 0, 1}),
    permuted("permute, negative axes", {2, 3}, {-1, -2}),
    permuted("permute NCHW to NHWC, 17 channels", {2, 17, 3, 5}, {0, 2, 3, 1}),
    permuted("permute of a scalar", {}, {}),
    permuted("permute of nothing", {2, 0, 3}, {2, 1, 0}),
});

Node x(Graph& graph, Shape shape) { return graph.input("x", {DType::float32, std::move(shape)}); }

const WrongCases wrong({
    {"reshape to another count",
     "reshape",
     [](Graph& graph) {
       reshape(x(graph, {2, 3}), {4, 2});
     },
     {"6 elements", "product"}},
    {"reshape with two open extents",
     "reshape",
     [](Graph& graph) {
       reshape(x(graph, {2, 3}), {-1, -1});
     },
     {"at most one"}},
    {"broadcast_to a smaller shape",
     "broadcast_to",
     [](Graph& graph) {
       broadcast_to(x(graph, {2, 3}), {1, 3});
     },
     {"[1,3]"}},
    {"permute with an axis twice",
     "permute",
     [](Graph& graph) {
       permute(x(graph, {2, 3}), {0, 0});
     },
     {"each axis of the value once"}},
});

}  // namespace

TEST_CASE("shape ops: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("shape ops: what they refuse") { check_all(wrong); }

TEST_CASE("permute moves integers and bools as well") {
  Graph graph;
  const Node numbers = graph.input("numbers", {DType::int64, {2, 3}});
  const auto result = Runner(graph, {permute(numbers, {1, 0})},
                             test_backend())({Tensor::of<std::int64_t>({2, 3}, {1, 2, 3, 4, 5, 6})});
  CHECK(result[0] == Tensor::of<std::int64_t>({3, 2}, {1, 4, 2, 5, 3, 6}));
}

}  // namespace plexaura::testing::shape_test
