#include "core/ops/batch_norm.h"

#include <doctest/doctest.h>

#include "backends/regions/batch_norm_regions.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"

namespace plexaura::testing::batch_norm_test {

namespace {

// Allows for float32 rounding of x - mean, the factor and the sum. The statistics are added in double, except
// within chunks of 64 terms.
constexpr double bound = 3e-6;

struct Operands {
  Node x, scale, shift;
};

Operands operands(Graph& graph, DType dtype, const Shape& shape) {
  return {graph.input("x", {dtype, shape}), graph.input("scale", {dtype, {shape[1]}}),
          graph.input("shift", {dtype, {shape[1]}})};
}

// Returns all results of a layer and its gradients. With `adds` a side path is added before the ReLU, and
// also gets the masked gradient. With `forks` the input is also used elsewhere.
std::vector<Node> with_relu(Graph& graph, DType dtype, const Shape& shape, bool adds, bool forks) {
  const auto [x, scale, shift] = operands(graph, dtype, shape);
  const BatchNormResult normal = batch_norm(x, scale, shift);
  const Node side = adds ? graph.input("side", {dtype, shape}) : Node();
  const Node y = relu(adds ? normal.y + square(side) : normal.y);
  Node loss = sum(y * graph.input("grad", {dtype, shape}));
  if (forks) loss = loss + sum(tanh(x));
  std::vector<Node> wanted{x, scale, shift};
  if (adds) wanted.push_back(side);
  std::vector<Node> results = gradients(loss, wanted);
  results.insert(results.end(), {y, normal.mean, normal.variance});
  return results;
}

const std::vector<Shape> shapes{{4, 17, 5, 3}, {3, 3, 4, 4}, {2, 32, 20, 20},
                                {6, 16, 1, 1}, {50, 24},     {3, 16, 9}};

}  // namespace

TEST_CASE("the ops of batch norm agree with the portable kernels in double and leave zeros in the padding") {
  for (const std::int64_t channels : {1, 3, 16, 17})
    for (const Layout& layout :
         {Layout::row_major(4), channels_last(), blocked_channels(16), blocked_channels(8)}) {
      const Shape shape{3, channels, 7, 5};
      const auto check = [&](const std::function<std::vector<Node>(Graph&, const Operands&)>& build,
                             const AgreementOptions& options) {
        const Agreement result = agreement_of_node(
            [&](Graph& graph, DType dtype) { return build(graph, operands(graph, dtype, shape)); }, {layout},
            options);
        CAPTURE(result.program);
        CHECK(result.uses("fast"));
        CHECK(result.worst() < bound);
      };
      const AgreementOptions positive{.low = 0.1, .high = 1};
      check(
          [](Graph&, const Operands& of) -> std::vector<Node> {
            const MomentsResult found = moments(of.x);
            return {found.mean, found.variance, found.inverse};
          },
          // The mean of this range is not 0, so that the error is relative to a mean of the size of the
          // terms.
          {.low = -0.5, .high = 1});
      const auto vector = [](Graph& graph, const Operands& of, const char* name) {
        return graph.input(name, of.scale.type());
      };
      check(
          [&](Graph& graph, const Operands& of) -> std::vector<Node> {
            return {
                normalise(of.x, of.scale, of.shift, vector(graph, of, "mean"), vector(graph, of, "inverse"))};
          },
          positive);
      check(
          [&](Graph& graph, const Operands& of) -> std::vector<Node> {
            const NormaliseGradResult grads = normalise_grad(
                of.x, of.scale, of.shift, vector(graph, of, "inverse"), graph.input("grad", of.x.type()));
            return {grads.x, grads.scale, grads.shift, grads.mean, grads.inverse};
          },
          positive);
      check(
          [&](Graph& graph, const Operands& of) -> std::vector<Node> {
            return {moments_grad(of.x, of.scale, of.shift, vector(graph, of, "of mean"),
                                 vector(graph, of, "of inverse"))};
          },
          positive);
    }
}

TEST_CASE("batch norm takes addition and ReLU along, forward and backward") {
  for (const Shape& shape : shapes)
    for (const bool adds : {false, true})
      for (const bool forks : {false, true}) {
        CAPTURE(to_string(shape));
        const Agreement result =
            agreement([&](Graph& graph, DType dtype) { return with_relu(graph, dtype, shape, adds, forks); });
        CAPTURE(result.program);
        CHECK(result.uses(adds ? "(moments+normalise+add+relu) [fast]" : "(moments+normalise+relu) [fast]"));
        CHECK(result.uses(forks ? "(gt+where+normalise_grad+add+moments_grad+add) [fast]"
                                : "(gt+where+normalise_grad+moments_grad+add) [fast]"));
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

TEST_CASE("one value far from all others costs the statistics no digits, wherever it lies") {
  constexpr std::int64_t size = 64;
  for (const std::int64_t place : {0, 5, 63, 64, 4095})
    for (const double far : {30.0, 3000.0}) {
      CAPTURE(place);
      CAPTURE(far);
      Tensor is_far({DType::boolean, {1, 1, size, size}});
      std::ranges::fill(is_far.as<bool>(), false);
      is_far.as<bool>()[static_cast<std::size_t>(place)] = true;
      const Agreement result = agreement([&](Graph& graph, DType dtype) -> std::vector<Node> {
        const auto [x, scale, shift] = operands(graph, dtype, {3, 17, size, size});
        const BatchNormResult normal = batch_norm(where(graph.constant(is_far), far, x), scale, shift);
        return {normal.mean, normal.variance, normal.y};
      });
      CHECK(result.uses("fast"));
      CHECK(result.worst() < 1e-6);
    }
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
    CHECK(result.uses(adds ? "(normalise+add+relu) [fast]" : "(normalise+relu) [fast]"));
    CHECK(result.worst() < bound);
  }
}

TEST_CASE("a NaN goes through batch norm, the addition and the ReLU behind it, forward and backward") {
  for (const bool adds : {false, true})
    for (const Mode mode : {Mode::train, Mode::inference}) {
      const Agreement result = agreement(
          [&](Graph& graph, DType dtype) -> std::vector<Node> {
            const auto [positive, scale, shift] = operands(graph, dtype, {2, 17, 4, 4});
            const Node x = log(positive - 0.0625);  // log() gives NaN in some channels
            const Node normal = mode == Mode::train ? batch_norm(x, scale, shift).y
                                                    : batch_norm_inference(x, scale, shift, shift, scale);
            const Node y = relu(adds ? graph.input("side", {dtype, normal.shape()}) + normal : normal);
            const Node loss = sum(y * graph.input("grad", {dtype, y.shape()}));
            return {y, gradients(loss, {positive})[0]};
          },
          {.low = 0, .high = 1, .mode = mode});
      CAPTURE(result.program);
      CHECK(result.uses("+relu"));
      CHECK(result.worst() < bound);
    }
}

TEST_CASE("batch norm of more than 8 MiB, which is written past the caches, agrees as well") {
  const Agreement result = agreement(
      [&](Graph& graph, DType dtype) -> std::vector<Node> {
        const auto [x, scale, shift] = operands(graph, dtype, {2, 17, 256, 260});
        return {batch_norm(x, scale, shift).y};
      },
      {.low = -0.5, .high = 1});
  CHECK(result.uses("(moments+normalise) [fast]"));
  CHECK(result.worst() < bound);
}

TEST_CASE("regions of batch norm are known by their kinds, and no others") {
  for (const char* kind :
       {"moments+normalise", "normalise+relu", "normalise+add+relu", "moments+normalise+add+relu"}) {
    CAPTURE(kind);
    REQUIRE(batch_norm_region(kind));
    CHECK(batch_norm_region(kind)->forward());
    CHECK(batch_norm_region(kind)->relu == (std::string_view(kind).find("relu") != std::string_view::npos));
  }
  for (const char* kind :
       {"normalise", "normalise+add", "moments+normalise+add", "moments", "normalise+relu+add", "relu"})
    CHECK_MESSAGE(!batch_norm_region(kind), kind);
}

TEST_CASE("batch norm by moments of another value runs as ops of their own") {
  const Agreement result = agreement([](Graph& graph, DType dtype) -> std::vector<Node> {
    const auto [x, scale, shift] = operands(graph, dtype, {4, 17, 5, 3});
    const MomentsResult of = moments(tanh(x));
    const Node y = relu(normalise(x, scale, shift, of.mean, of.inverse));
    std::vector<Node> results = gradients(sum(square(y)), {x, scale, shift});
    results.push_back(y);
    return results;
  });
  CAPTURE(result.program);
  CHECK(result.uses("(normalise+relu) [fast]"));
  CHECK_FALSE(result.uses("moments+"));
  CHECK_FALSE(result.uses("+moments_grad"));
  CHECK_FALSE(result.uses("portable"));
  CHECK(result.worst() < bound);
}

}  // namespace plexaura::testing::batch_norm_test
