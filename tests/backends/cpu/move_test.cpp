#include <doctest/doctest.h>

#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::move_test {

namespace {

void check_moves(const BuildNode& build) { check_bits(build, every_dtype, {.labels = 200}); }

}  // namespace

TEST_CASE("permuted values of any rank have the elements of the portable kernel") {
  const std::vector<std::pair<Shape, std::vector<std::int64_t>>> cases{
      {{}, {}},
      {{5}, {0}},
      {{1, 1}, {1, 0}},
      {{3, 1}, {1, 0}},
      {{17, 33}, {1, 0}},
      {{65, 130}, {1, 0}},
      {{200, 70}, {1, 0}},
      {{70, 20000}, {0, 1}},
      {{3, 20000}, {1, 0}},
      {{5, 6, 7}, {2, 0, 1}},
      {{5, 6, 7}, {2, 1, 0}},
      {{5, 66, 7}, {0, 2, 1}},
      {{5, 6, 70}, {1, 0, 2}},
      {{4, 17, 3, 16}, {0, 2, 1, 3}},
      {{4, 17, 3, 16}, {0, 2, 3, 1}},
      {{4, 17, 3, 16}, {3, 2, 1, 0}},
      {{2, 3, 1, 5, 4}, {4, 2, 0, 3, 1}},
  };
  for (const auto& [shape, axes] : cases) {
    CAPTURE(to_string(shape));
    check_moves([&](Graph& graph, DType dtype) { return permute(graph.input("x", {dtype, shape}), axes); });
  }
}

TEST_CASE("slices with any step and their gradients have the elements of the portable kernel") {
  const std::vector<SliceOptions> options{
      {},
      {.start = 3},
      {.start = 2, .stop = 3},
      {.stop = -1},
      {.step = 2},
      {.start = 1, .stop = 12, .step = 3},
      {.step = -1},
      {.start = -2, .stop = 1, .step = -2},
  };
  for (const Shape& shape :
       {Shape{19}, Shape{18000}, Shape{19, 40}, Shape{3, 19, 5}, Shape{70, 19}, Shape{2, 3, 19, 1}})
    for (std::int64_t axis = 0; axis < shape.rank(); ++axis)
      for (SliceOptions of : options) {
        of.axis = axis;
        if (shape[axis] < 4) of = {.axis = axis, .start = -1};
        CAPTURE(to_string(shape));
        CAPTURE(axis);
        check_moves([&](Graph& graph, DType dtype) { return slice(graph.input("x", {dtype, shape}), of); });
        check_moves([&](Graph& graph, DType dtype) {
          const Node x = graph.input("x", {dtype, shape});
          return slice_grad(graph.input("grad", slice(x, of).type()), shape[axis], of);
        });
      }
}

TEST_CASE("the gradient of an empty slice is 0") {
  check_moves([](Graph& graph, DType dtype) {
    return slice_grad(graph.input("grad", {dtype, {3, 0}}), 5, {.axis = 1, .start = 2, .stop = 2});
  });
}

TEST_CASE("joined values have the elements of the portable kernel") {
  const std::vector<std::vector<std::int64_t>> extents{{1}, {4, 5}, {0, 3}, {3, 0, 1}, {1, 1, 1, 1}, {70, 2}};
  for (const auto& parts : extents)
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      CAPTURE(axis);
      check_moves([&](Graph& graph, DType dtype) {
        std::vector<Operand> operands;
        for (const std::int64_t extent : parts) {
          std::vector<std::int64_t> shape{5, 6, 7};
          shape[static_cast<std::size_t>(axis)] = extent;
          operands.emplace_back(
              graph.input("part" + std::to_string(operands.size()), {dtype, Shape(std::move(shape))}));
        }
        return concat(std::move(operands), axis);
      });
    }
  check_moves([](Graph& graph, DType dtype) {
    const Node x = graph.input("x", {dtype, {3, 4}});
    return concat({x, x}, 0);
  });
}

}  // namespace plexaura::testing::move_test
