#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/labels.h"
#include "core/ops/unary.h"
#include "tests/backends/cpu/agreement.h"
#include "tests/support/cases.h"

namespace plexaura::testing::class_test {

namespace {

// Exponentials have errors of some units in the last place. A probability adds the errors of all classes.
constexpr double bound = 2e-6;

}  // namespace

TEST_CASE("losses and hits agree with the portable kernels in double, labels out of range among them") {
  for (const std::int64_t classes : {1, 3, 10, 17, 100})
    for (const std::int64_t samples : {1, 5, 128})
      for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
        for (const std::int64_t labels : {classes, classes + 2}) {
          CAPTURE(classes);
          CAPTURE(samples);
          CAPTURE(labels);
          const Agreement result = agreement(
              [&](Graph& graph, DType dtype) -> std::vector<Node> {
                const Node logits = graph.input("logits", {dtype, {samples, classes}});
                const Node targets = graph.input("labels", {DType::int64, {samples}});
                const Node loss = softmax_cross_entropy(logits, targets, {reduction});
                const Node seed = graph.input("grad", loss.type());
                const std::vector<Node> of_grad{logits, targets, output_of(loss, 1), seed};
                return {
                    loss,
                    output_of(loss, 1),
                    graph.append(std::make_shared<SoftmaxCrossEntropyGrad>(CrossEntropyOptions{reduction}),
                                 of_grad, Graph::Where::current())[0],
                    top_k_correct(logits, targets),
                    top_k_correct(logits, targets, 5),
                    one_hot(targets, classes, dtype)};
              },
              {.low = -20, .high = 20, .labels = labels});
          CAPTURE(result.program);
          CHECK_FALSE(result.uses("portable"));
          CHECK(result.worst() < bound);
        }
}

TEST_CASE("losses of doubles and their gradients have the digits of the portable kernels") {
  for (const std::int64_t classes : {1, 17, 100})
    for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none})
      for (const std::int64_t labels : {classes, classes + 2}) {
        CAPTURE(classes);
        CAPTURE(labels);
        const Agreement result = agreement(
            [&](Graph& graph, DType dtype) -> std::vector<Node> {
              const Node logits = graph.input("logits", {dtype, {70, classes}});
              const Node targets = graph.input("labels", {DType::int64, {70}});
              const Node loss = softmax_cross_entropy(logits, targets, {reduction});
              const Node seed = graph.input("grad", loss.type());
              return {loss, output_of(loss, 1),
                      vjp(std::vector{loss}, std::vector{seed}, std::vector{logits})[0]};
            },
            {.low = -20, .high = 20, .labels = labels, .dtype = DType::float64});
        CAPTURE(result.program);
        CHECK_FALSE(result.uses("portable"));
        CHECK(result.worst() < bound_of_doubles);
      }
}

TEST_CASE("equal and infinite logits and NaN count as in the portable kernels") {
  const Agreement result = agreement(
      [](Graph& graph, DType dtype) -> std::vector<Node> {
        const Node x = graph.input("logits", {dtype, {200, 4}});
        const Node labels = graph.input("labels", {DType::int64, {200}});
        std::vector<Node> found;
        for (const Node& logits : {relu(x), log(x), log(relu(x)), neg(log(relu(x)))}) {
          const Node loss = softmax_cross_entropy(logits, labels, {Reduction::none});
          for (const Node& node :
               {loss, output_of(loss, 1), top_k_correct(logits, labels), top_k_correct(logits, labels, 2)})
            found.push_back(node);
        }
        return found;
      },
      {.labels = 4});
  CHECK(result.worst() < bound);
}

}  // namespace plexaura::testing::class_test
