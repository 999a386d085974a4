#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/vm/vm.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/backend_fixture.h"

namespace plexaura::testing::index_test {

namespace {

const std::vector<DType> summed_dtypes{DType::float64, DType::float32};

Node indices_of(Graph& graph, const Shape& shape) { return graph.input("indices", {DType::int64, shape}); }

}  // namespace

TEST_CASE("rows at indices have the elements of the portable kernel, and their gradients its sums") {
  for (const Shape& shape :
       {Shape{40}, Shape{40, 3}, Shape{40, 200}, Shape{3, 40}, Shape{3, 40, 17}, Shape{2, 3, 40, 5}})
    for (const Shape& picked : {Shape{}, Shape{70}, Shape{5, 300}, Shape{2, 0}})
      for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
        if (shape[axis] != 40) continue;
        CAPTURE(to_string(shape));
        CAPTURE(to_string(picked));
        const auto gathered = [&](Graph& graph, DType dtype) {
          return gather(graph.input("x", {dtype, shape}), indices_of(graph, picked), {axis});
        };
        if (picked.elements() > 0) check_bits(gathered, every_dtype, {.labels = 40});
        check_bits(
            [&](Graph& graph, DType dtype) {
              Graph forward;
              const Node grad = graph.input("grad", gathered(forward, dtype).type());
              return gather_grad(grad, indices_of(graph, picked), 40, {axis});
            },
            summed_dtypes, {.labels = 40});
      }
}

TEST_CASE("elements at indices along an axis have the bits of the portable kernels") {
  for (const Shape& shape : {Shape{40}, Shape{6, 40}, Shape{40, 6}, Shape{3, 40, 130}, Shape{2, 3, 40}})
    for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] != 40) continue;
      for (const std::int64_t count : {1, 7, 90}) {
        CAPTURE(to_string(shape));
        CAPTURE(count);
        std::vector<std::int64_t> extents = shape.extents();
        extents[static_cast<std::size_t>(axis)] = count;
        const Shape picked(extents);
        check_bits(
            [&](Graph& graph, DType dtype) {
              return take_along_axis(graph.input("x", {dtype, shape}), indices_of(graph, picked), axis);
            },
            every_dtype, {.labels = 40});
        const auto scattered = [&](Graph& graph, DType dtype) {
          return scatter(graph.input("x", {dtype, shape}), indices_of(graph, picked),
                         graph.input("updates", {dtype, picked}), axis);
        };
        check_bits(scattered, every_dtype, {.labels = 40});
        check_bits(
            [&](Graph& graph, DType dtype) {
              TakeAlongAxisGradOptions options;
              options.axis = axis;
              options.extent = 40;
              return apply(std::make_shared<TakeAlongAxisGrad>(options),
                           {graph.input("updates", {dtype, picked}), indices_of(graph, picked)});
            },
            summed_dtypes, {.labels = 40});
      }
    }
}

TEST_CASE("an index out of range ends the run with the error of the portable kernel") {
  const auto message = [](Backend& backend, std::int64_t wrong) -> std::string {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {4, 2}});
    const Node picked = gather(x, graph.input("indices", {DType::int64, {3}}));
    try {
      Runner(graph, {picked}, backend)({Tensor(x.type()), Tensor::of<std::int64_t>({3}, {0, wrong, 3})});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 62}) {
    const std::string found = message(*fast, wrong);
    CHECK(found.find("element 1 of the indices is " + std::to_string(wrong)) != std::string::npos);
    CHECK(found.find("index_test.cpp") != std::string::npos);
    CHECK(!message(*portable, wrong).empty());
  }
}

}  // namespace plexaura::testing::index_test
