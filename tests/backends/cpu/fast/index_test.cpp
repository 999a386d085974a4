#include <algorithm>
#include <doctest/doctest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fast/index/index_loops.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
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

TEST_CASE("elements along an axis may be taken from any element to any other one") {
  constexpr std::int64_t extent = 4;
  for (const Lines& lines : {Lines{2, 5, 1}, Lines{2, 5, 3}, Lines{1, 1, 7}, Lines{3, 1, 1}}) {
    CAPTURE(lines.behind);
    const std::int64_t count = lines.count() * lines.extent;
    std::vector<std::int64_t> indices;
    std::vector<std::uint32_t> source;
    std::vector<std::uint32_t> expected;
    for (std::int64_t i = 0; i < lines.count() * extent; ++i)
      source.push_back(static_cast<std::uint32_t>(100 + i));
    for (std::int64_t i = 0; i < count; ++i) {
      indices.push_back(i * 7 % extent);
      const std::int64_t outer = i / lines.behind / lines.extent;
      const std::int64_t row = outer * extent + indices.back();
      expected.push_back(source[static_cast<std::size_t>(row * lines.behind + i % lines.behind)]);
    }
    for (std::int64_t begin = 0; begin <= count; ++begin)
      for (std::int64_t end = begin; end <= count; ++end) {
        std::vector<std::uint32_t> wanted(expected.size(), 0);
        std::copy(expected.begin() + begin, expected.begin() + end, wanted.begin() + begin);
        std::vector<std::uint32_t> found(expected.size(), 0);
        fast::take_elements({lines, extent, indices.data()}, source.data(), found.data(), begin, end);
        CHECK(found == wanted);
      }
  }
}

TEST_CASE("an index out of range ends the run with the error of the portable kernel") {
  struct Indexed {
    std::string name;
    Node (*build)(const Node& x, const Node& updates, const Node& indices);  // of [4, 2], [3, 2] and [3, 2]
  };
  const std::vector<Indexed> indexed{
      {"gather", [](const Node& x, const Node&, const Node& indices) { return gather(x, indices); }},
      {"gather_grad",
       [](const Node&, const Node& updates, const Node& indices) {
         return gather_grad(broadcast_to(sum(updates), {3, 2, 2}), indices, 4);
       }},
      {"take_along_axis",
       [](const Node& x, const Node&, const Node& indices) { return take_along_axis(x, indices, 0); }},
      {"take_along_axis_grad",
       [](const Node&, const Node& updates, const Node& indices) {
         TakeAlongAxisGradOptions options;
         options.axis = 0;
         options.extent = 4;
         return apply(std::make_shared<TakeAlongAxisGrad>(options), {updates, indices});
       }},
      {"scatter", [](const Node& x, const Node& updates, const Node& indices) {
         return scatter(x, indices, updates, 0);
       }}};
  const auto message = [](Backend& backend, const Indexed& of, std::int64_t wrong) -> std::string {
    Graph graph;
    const Node x = graph.input("x", {DType::float32, {4, 2}});
    const Node updates = graph.input("updates", {DType::float32, {3, 2}});
    const Node node = of.build(x, updates, indices_of(graph, {3, 2}));
    try {
      Runner(graph, {node}, backend)({Tensor(x.type()), Tensor(updates.type()),
                                      Tensor::of<std::int64_t>({3, 2}, {0, wrong, 3, 1, 2, 0})});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto fast = make_cpu_backend();
  const auto portable = make_portable_backend();
  for (const Indexed& of : indexed)
    for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{1} << 62}) {
      CAPTURE(of.name);
      const std::string found = message(*fast, of, wrong);
      CHECK(found.find("is " + std::to_string(wrong)) != std::string::npos);
      CHECK(found.find("index_test.cpp") != std::string::npos);
      CHECK(found == message(*portable, of, wrong));
    }
}

}  // namespace plexaura::testing::index_test
