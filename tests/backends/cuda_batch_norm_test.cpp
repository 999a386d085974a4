// Tests the kernels of batch norm for CUDA (backends/cuda/kernels/batch_norm.h) on the simulated runtime.

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/has_simulated_cuda.h"
#include "tests/support/layout_backend.h"
#include "tests/support/pattern.h"
#include "tests/support/simulated_widths.h"

namespace plexaura::testing::cuda_batch_norm_test {

namespace {

// The bounds of the CPU's kernels, which also compute in float32: tests/backends/cpu/batch_norm_test.cpp.
constexpr double bound = 3e-6;
constexpr double bound_of_statistics = 1e-6;

// Calls check(backend) for row-major images and for channels last.
template <class Check>
void in_each_layout(const Check& check) {
  const auto cuda = open_backend("simulated_cuda");
  for (const LayoutOfRank layout_of : {in_blocks, in_channels_last}) {
    LayoutBackend backend(*cuda, layout_of);
    CAPTURE(layout_of == in_channels_last);
    check(backend);
  }
}

struct Operands {
  Node x, scale, shift;
};

Operands operands(Graph& graph, DType dtype, const Shape& shape) {
  const DType statistic = dtype == DType::float64 ? dtype : DType::float32;
  return {graph.input("x", {dtype, shape}), graph.input("scale", {statistic, {shape[1]}}),
          graph.input("shift", {statistic, {shape[1]}})};
}

// Returns the gradients and results of a layer. With `adds` a side path is added before the ReLU.
std::vector<Node> layer(Graph& graph, DType dtype, const Shape& shape, bool adds) {
  const auto [x, scale, shift] = operands(graph, dtype, shape);
  const BatchNormResult normal = batch_norm(x, scale, shift);
  const Node y = relu(adds ? graph.input("side", {dtype, shape}) + normal.y : normal.y);
  const Node loss = sum(y * graph.input("grad", {dtype, shape}));
  std::vector<Node> results = gradients(loss, {x, scale, shift});
  results.insert(results.end(), {y, normal.mean, normal.variance});
  return results;
}

// A tensor of booleans that is true at one place of each image.
Tensor at_place(const Shape& image, std::int64_t place) {
  Tensor chosen({DType::boolean, image});
  std::ranges::fill(chosen.as<bool>(), false);
  chosen.as<bool>()[static_cast<std::size_t>(place)] = true;
  return chosen;
}

}  // namespace

TEST_CASE("batch norm on CUDA agrees with the portable kernels in double") {
  if (!has_simulated_cuda()) return;
  in_each_layout([](Backend& backend) {
    for (const Shape& shape : {Shape{3, 16, 9, 11},  // groups of channels, and none of pixels
                               Shape{2, 5, 8, 6},    // groups of pixels, and none of channels
                               Shape{3, 7, 5, 3},    // no groups
                               Shape{2, 260, 3, 4},  // more channels than a block adds up
                               Shape{2, 8, 96, 96},  // sums of several blocks
                               Shape{40, 24}, Shape{3, 12, 8}})
      for (const bool adds : {false, true}) {
        CAPTURE(to_string(shape));
        CAPTURE(adds);
        const Agreement result =
            agreement([&](Graph& graph, DType dtype) { return layer(graph, dtype, shape, adds); },
                      {.backend = &backend});
        CHECK(result.worst() < bound);
      }
  });
}

TEST_CASE("batch norm of 16 bits on CUDA has the statistics of the portable kernels") {
  if (!has_simulated_cuda()) return;
  const auto portable = open_backend("portable");
  in_each_layout([&](Backend& backend) {
    for (const DType dtype : {DType::bfloat16, DType::float16})
      for (const Shape& shape : {Shape{3, 16, 9, 11}, Shape{2, 72, 16, 16}, Shape{3, 7, 5, 3}}) {
        CAPTURE(name_of(dtype));
        CAPTURE(to_string(shape));
        Graph graph;
        const auto [x, scale, shift] = operands(graph, dtype, shape);
        const BatchNormResult normal = batch_norm(x, scale, shift);
        const std::vector<Tensor> values{pattern(shape).cast(dtype), pattern({shape[1]}).cast(DType::float32),
                                         pattern({shape[1]}, 3).cast(DType::float32)};
        const auto found = Runner(graph, {normal.mean, normal.variance, normal.y}, backend)(values);
        const auto expected = Runner(graph, {normal.mean, normal.variance, normal.y}, *portable)(values);
        check_close(found[0], expected[0].to_doubles(), bound_of_statistics);
        check_close(found[1], expected[1].to_doubles(), bound_of_statistics);
        // Each element is rounded to 16 bits in one of two ways.
        check_close(found[2], expected[2].to_doubles(), dtype == DType::bfloat16 ? 0x1p-7 : 0x1p-10);
      }
  });
}

TEST_CASE("the statistics of a large mean and a small deviation are exact on CUDA") {
  if (!has_simulated_cuda()) return;
  in_each_layout([](Backend& backend) {
    const Agreement result = agreement(
        [](Graph& graph, DType dtype) -> std::vector<Node> {
          const auto [x, scale, shift] = operands(graph, dtype, {8, 16, 16, 16});
          const BatchNormResult normal = batch_norm(x, scale, shift);
          return {normal.mean, normal.variance};
        },
        {.low = 1000, .high = 1001, .backend = &backend});
    CHECK(result.worst() < bound_of_statistics);
  });
}

TEST_CASE("one value far from all others costs the statistics no digits on CUDA, wherever it lies") {
  if (!has_simulated_cuda()) return;
  constexpr std::int64_t size = 32;
  in_each_layout([](Backend& backend) {
    for (const std::int64_t place : {0, 5, 63, 64, 1023})
      for (const double far : {30.0, 3000.0}) {
        CAPTURE(place);
        CAPTURE(far);
        const Tensor is_far = at_place({1, 1, size, size}, place);
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              const auto [x, scale, shift] = operands(graph, dtype, {3, 8, size, size});
              const BatchNormResult normal = batch_norm(where(graph.constant(is_far), far, x), scale, shift);
              return {normal.mean, normal.variance, normal.y};
            },
            {.backend = &backend});
        CHECK(result.worst() < bound_of_statistics);
      }
  });
}

TEST_CASE("a NaN goes through batch norm and ReLU on CUDA, forward and backward") {
  if (!has_simulated_cuda()) return;
  in_each_layout([](Backend& backend) {
    const Agreement result = agreement(
        [](Graph& graph, DType dtype) -> std::vector<Node> {
          const auto [positive, scale, shift] = operands(graph, dtype, {2, 16, 4, 4});
          const Node x = log(positive - 0.03125);  // log() gives NaN in some channels
          const Node y = relu(batch_norm(x, scale, shift).y);
          const Node loss = sum(y * graph.input("grad", {dtype, y.shape()}));
          return {y, gradients(loss, {positive})[0]};
        },
        {.low = 0, .high = 1, .backend = &backend});
    CHECK(result.worst() < bound);
  });
}

TEST_CASE("a thread computes batch norm of as many channels at once as 16 bytes hold") {
  if (!has_simulated_cuda()) return;
  struct Case {
    DType dtype;
    std::int64_t channels;
    int width;
  };
  for (const auto& [dtype, channels, width] :
       {Case{DType::bfloat16, 16, 8}, Case{DType::float16, 24, 8}, Case{DType::bfloat16, 12, 1},
        Case{DType::float32, 12, 4}, Case{DType::float32, 10, 1}}) {
    CAPTURE(name_of(dtype));
    CAPTURE(channels);
    Graph graph;
    const Shape shape{40, channels};
    const auto [x, scale, shift] = operands(graph, dtype, shape);
    const Node y = batch_norm(x, scale, shift).y;
    std::vector<Node> results = gradients(sum(y), {x});
    results.push_back(y);
    const auto widths = widths_of(graph, results,
                                  {pattern(shape).cast(dtype), pattern({channels}).cast(DType::float32),
                                   pattern({channels}).cast(DType::float32)});
    for (const char* op : {"moments", "normalise", "normalise_grad", "moments_grad"}) {
      CAPTURE(op);
      REQUIRE(widths.contains(op));
      CHECK(widths.at(op) == width);
    }
  }
}

}  // namespace plexaura::testing::cuda_batch_norm_test
