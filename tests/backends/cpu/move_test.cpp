#include <doctest/doctest.h>
#include <functional>

#include "backends/cpu/cpu_backend.h"
#include "core/ops/concat.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::move_test {

namespace {

using Build = std::function<Node(Graph& graph, DType dtype)>;

const std::vector<DType> every_dtype{DType::float64, DType::float32, DType::bfloat16, DType::float16,
                                     DType::int64,   DType::int32,   DType::uint8,    DType::boolean};

Tensor result_of(Backend& backend, const Build& build, DType dtype) {
  Graph graph;
  const Node node = build(graph, dtype);
  std::vector<Tensor> inputs;
  for (const Value value : graph.record(node.id()).inputs) {
    const Leaf* leaf = as_leaf(*graph.record(value.node).op);
    REQUIRE(leaf != nullptr);
    inputs.push_back(drawn(leaf->type(), leaf->label(), {.labels = 200}));
  }
  RegionRun run(backend, graph, single(graph, node.id()), inputs);
  CHECK((run.candidate().implementation == "fast") == (backend.info().name == "cpu"));
  run.output().spoil();
  run.launch();
  return run.output().read();
}

// Compares the fast kernel with the portable one, for every dtype.
void check_moves(const Build& build) {
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const DType dtype : every_dtype) {
    CAPTURE(name_of(dtype));
    CHECK(result_of(*fast, build, dtype) == result_of(*portable, build, dtype));
  }
}

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
