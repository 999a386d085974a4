#include "core/ops/matmul.h"

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::matmul_test {

namespace {

OpCase product(const std::string& name, Shape a, Shape b, MatMulOptions options = {}) {
  return {"matmul, " + name,
          "matmul",
          [=](Graph&, auto x) { return std::vector{matmul(x[0], x[1], options)}; },
          {{std::move(a)}, {std::move(b)}},
          [=](auto x) { return std::vector{reference::matmul(x[0], x[1], options)}; }};
}

const Cases cases({
    product("plain", {3, 4}, {4, 5}),
    product("transposed left", {4, 3}, {4, 5}, {.transpose_a = true}),
    product("transposed right", {3, 4}, {5, 4}, {.transpose_b = true}),
    product("transposed both", {4, 3}, {5, 4}, {.transpose_a = true, .transpose_b = true}),
    product("one row", {1, 7}, {7, 1}),
    product("a batch", {2, 3, 4}, {2, 4, 5}),
    product("a batch by one matrix", {2, 3, 4}, {4, 5}),
    product("a batch by one transposed matrix", {2, 3, 2, 4}, {5, 4}, {.transpose_b = true}),
    product("a batch by one matrix without columns", {2, 3, 4}, {4, 0}),
    product("a transposed batch by one matrix", {2, 4, 3}, {4, 5}, {.transpose_a = true}),
    product("one matrix by a batch", {3, 4}, {2, 5, 4}, {.transpose_b = true}),
    product("broadcast batches", {2, 1, 3, 4}, {3, 5, 4}, {.transpose_b = true}),
    product("larger than a tile", {35, 70}, {70, 33}),
    product("no rows", {0, 4}, {4, 5}),
    product("no inner extent", {3, 0}, {0, 5}),
});

WrongCase refused(std::string name, const Shape& a, const Shape& b, std::vector<std::string> words) {
  return {std::move(name), "matmul",
          [=](Graph& graph) {
            matmul(graph.input("a", {DType::float32, a}), graph.input("b", {DType::float32, b}));
          },
          std::move(words)};
}

const WrongCases wrong({
    refused("matmul, inner extents", {2, 3}, {4, 5},
            {"inner extents", "K is 3", "and 4", "float32[2,3]", "float32[4,5]"}),
    refused("matmul, a vector", {3}, {3, 5}, {"two axes", "reshape"}),
    refused("matmul, batches", {2, 3, 4}, {3, 4, 5}, {"do not broadcast"}),
    {"matmul of integers",
     "matmul",
     [](Graph& graph) {
       matmul(graph.input("a", {DType::int32, {2, 2}}), graph.input("b", {DType::int32, {2, 2}}));
     },
     {"int32", "cast()"}},
});

}  // namespace

TEST_CASE("matmul: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("matmul: every kernel that is offered") { check_other_kernels(cases); }

TEST_CASE("the gradient of one matrix by which a batch is multiplied is one product over all rows") {
  for (const bool transpose_b : {false, true}) {
    Graph graph;
    const Node a = graph.input("a", {DType::float32, {6, 5, 4}});
    const Node b = graph.input("b", {DType::float32, transpose_b ? Shape{3, 4} : Shape{4, 3}});
    const Node gradient = gradients(sum(matmul(a, b, {.transpose_b = transpose_b})), {b})[0];
    CHECK(graph.record(gradient.id()).op->name() == "matmul");
  }
}
TEST_CASE("matmul: what it refuses") { check_all(wrong); }

}  // namespace plexaura::testing::matmul_test
