#include "core/ops/batch_norm.h"

#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"

using namespace plexaura;
using namespace plexaura::testing;

namespace {

// Roundings of float32 in x - mean, the factor and the sum; statistics are exact to double but for chunks of
// 64 terms.
constexpr double bound = 3e-6;

struct Operands {
  Node x, scale, shift;
};

Operands operands(Graph& graph, DType dtype, const Shape& shape) {
  return {graph.input("x", {dtype, shape}), graph.input("scale", {dtype, {shape[1]}}),
          graph.input("shift", {dtype, {shape[1]}})};
}

// How a layer runs backward: through the ReLU, whose gradient the skip path may read too.
std::vector<Node> with_relu(Graph& graph, DType dtype, const Shape& shape, bool adds, bool skips) {
  const auto [x, scale, shift] = operands(graph, dtype, shape);
  const BatchNormResult normal = batch_norm(x, scale, shift);
  const Node side = adds ? square(graph.input("side", {dtype, shape})) : Node();
  const Node y = relu(adds ? normal.y + side : normal.y);
  const Node grad = where(gt(y, 0), graph.input("grad", {dtype, shape}), 0);
  const BatchNormGradResult grads = batch_norm_grad(x, scale, normal.mean, normal.variance, grad);
  std::vector<Node> results{y, normal.mean, normal.variance, grads.x, grads.scale, grads.shift};
  if (skips) results.push_back(neg(grad));
  return results;
}

const std::vector<Shape> shapes{{4, 17, 5, 3}, {3, 3, 4, 4}, {2, 32, 20, 20},
                                {6, 16, 1, 1}, {50, 24},     {3, 16, 9}};

}  // namespace

TEST_CASE("batch norm agrees with the portable kernel in double and leaves zeros in the padding") {
  for (const std::int64_t channels : {1, 3, 16, 17})
    for (const Layout& layout :
         {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)}) {
      const Shape shape{3, channels, 7, 5};
      const Agreement forward = agreement_of_node(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto [x, scale, shift] = operands(graph, dtype, shape);
            return {batch_norm(x, scale, shift).y};
          },
          {layout}, {.low = -0.5, .high = 1});  // means that are not lost beside the terms
      CHECK(forward.uses("fast"));
      CHECK(forward.worst() < bound);
      const Agreement backward = agreement_of_node(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto [x, scale, shift] = operands(graph, dtype, shape);
            return {batch_norm_grad(x, scale, shift, graph.input("variance", {dtype, {channels}}),
                                    graph.input("grad", {dtype, shape}))
                        .x};
          },
          {layout}, {.low = 0.1, .high = 1});
      CHECK(backward.worst() < bound);
      const Agreement inference = agreement_of_node(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto [x, scale, shift] = operands(graph, dtype, shape);
            return {batch_norm_inference(x, scale, shift, graph.input("mean", {dtype, {channels}}),
                                         graph.input("variance", {dtype, {channels}}))};
          },
          {layout}, {.low = 0.1, .high = 1});
      CHECK(inference.worst() < bound);
    }
}

TEST_CASE("batch norm takes addition and ReLU along, forward and backward") {
  for (const Shape& shape : shapes)
    for (const bool adds : {false, true})
      for (const bool skips : {false, true}) {
        CAPTURE(to_string(shape));
        const Agreement result =
            agreement([&](Graph& graph, DType dtype) { return with_relu(graph, dtype, shape, adds, skips); });
        CAPTURE(result.program);
        CHECK(result.uses(adds ? "(batch_norm+add+relu) [fast]" : "(batch_norm+relu) [fast]"));
        CHECK(result.uses("(gt+where+batch_norm_grad) [fast]"));
        CHECK(result.worst() < bound);
      }
}

TEST_CASE("the statistics of a large mean and a small deviation are exact") {
  const Agreement result = agreement(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        const auto [x, scale, shift] = operands(graph, dtype, {8, 16, 16, 16});
        const BatchNormResult normal = batch_norm(x, scale, shift);
        return {normal.mean, normal.variance};
      },
      {.low = 1000, .high = 1001});
  CHECK(result.worst() < 1e-6);
}

TEST_CASE("batch norm at inference takes addition and ReLU along") {
  for (const bool adds : {false, true}) {
    const Agreement result = agreement(
        [&](Graph& graph, DType dtype) -> std::vector<Node> {
          const auto [x, scale, shift] = operands(graph, dtype, {2, 17, 4, 4});
          const Node y = batch_norm_inference(x, scale, shift, graph.input("mean", {dtype, {17}}),
                                              graph.input("variance", {dtype, {17}}));
          return {relu(adds ? graph.input("side", {dtype, y.shape()}) + y : y)};
        },
        {.low = 0.1, .high = 1, .mode = Mode::inference});
    CHECK(result.uses("batch_norm_inference+"));
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("a NaN goes through batch norm, the addition and the ReLU behind it, forward and backward") {
  for (const bool adds : {false, true})
    for (const Mode mode : {Mode::train, Mode::inference}) {
      const Agreement result = agreement(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto [positive, scale, shift] = operands(graph, dtype, {2, 17, 4, 4});
            const Node x = log(positive - 0.0625);  // NaN in some channels
            const Node normal = mode == Mode::train ? batch_norm(x, scale, shift).y
                                                    : batch_norm_inference(x, scale, shift, shift, scale);
            const Node y = relu(adds ? graph.input("side", {dtype, normal.shape()}) + normal : normal);
            const Node grad = where(gt(y, 0), graph.input("grad", {dtype, y.shape()}), 0);
            return {y, batch_norm_grad(x, scale, shift, scale, grad).x};
          },
          {.low = 0, .high = 1, .mode = mode});
      CAPTURE(result.program);
      CHECK(result.uses("+relu"));
      CHECK(result.worst() < bound);
    }
}

TEST_CASE("batch norm of more than 8 MiB, which is written past the caches, agrees as well") {
  const Shape shape{2, 17, 256, 260};
  for (const Layout& layout : {Layout::row_major(4), blocked_channels(16)}) {
    const Agreement result = agreement_of_node(
        [&](Graph& graph, DType dtype) -> std::vector<Node> {
          const auto [x, scale, shift] = operands(graph, dtype, shape);
          return {batch_norm(x, scale, shift).y};
        },
        {layout}, {.low = -0.5, .high = 1});
    CHECK(result.uses("fast"));
    CHECK(result.worst() < bound);
  }
}
