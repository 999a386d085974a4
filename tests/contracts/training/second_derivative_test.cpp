// Saved outputs are ordinary values, and the gradient of a gradient op is its total derivative: second
// derivatives through batch norm and cross-entropy agree with differences of first derivatives.

#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/batch_norm.h"
#include "core/ops/binary.h"
#include "core/ops/conv2d.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/unary.h"
#include "testing/check_gradients.h"
#include "testing/run.h"
#include "testing/values.h"
#include "tests/support/backend.h"

namespace plexaura::testing::second_derivative_test {

namespace {

Tensor random(Shape shape, std::uint64_t seed) {
  return Random(seed).tensor({DType::float64, std::move(shape)}, -1, 1);
}

void check(const BuildFunction& build, const std::vector<Tensor>& inputs) {
  const GradientReport report = check_gradients(build, inputs, test_backend());
  CHECK_MESSAGE(report.passed, to_string(report));
  CHECK(report.compared > 0);
  MESSAGE("worst first derivative ", report.worst, ", second ", report.worst_second);
}

}  // namespace

TEST_CASE("through batch norm") {
  check(
      [](Graph&, std::span<const Node> in) -> std::vector<Node> {
        return {tanh(batch_norm(conv2d(in[0], in[1]), in[2], in[3]).y)};
      },
      {random({3, 2, 4, 4}, 1), random({3, 2, 3, 3}, 2), random({3}, 3), random({3}, 4)});
}

TEST_CASE("through cross-entropy") {
  check(
      [](Graph&, std::span<const Node> in) -> std::vector<Node> {
        return {softmax_cross_entropy(matmul(tanh(in[0]), in[1]), in[2])};
      },
      {random({4, 3}, 1), random({3, 5}, 2), Tensor::of<std::int64_t>({4}, {0, 4, 2, 2})});
}

TEST_CASE("a penalty on the slope, as a user writes it") {
  // The loss of a step already contains a gradient.
  check(
      [](Graph&, std::span<const Node> in) -> std::vector<Node> {
        const Node pooled = avg_pool2d(batch_norm(in[0], in[1], in[2]).y, {.kernel = {2, 2}});
        const Node loss = softmax_cross_entropy(flatten(pooled), in[3]);
        return {loss + 0.5 * sum(square(gradients(loss, {in[0]})[0]))};
      },
      {random({3, 2, 2, 4}, 1), random({2}, 2), random({2}, 3), Tensor::of<std::int64_t>({3}, {0, 3, 1})});
}

}  // namespace plexaura::testing::second_derivative_test
