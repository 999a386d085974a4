#include "core/ops/cross_entropy.h"

#include <array>
#include <cmath>
#include <doctest/doctest.h>

#include "core/autodiff/gradients.h"
#include "core/ops/reduce.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/pattern.h"

namespace plexaura::testing::cross_entropy_test {

namespace {

Node labels_of(Graph& graph, std::int64_t count) { return graph.input("labels", {DType::int64, {count}}); }

}  // namespace

TEST_CASE("ignored samples have the loss 0 and the gradient 0, and a mean is over the others") {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    for (const std::int64_t ignored : {-1, 3}) {  // -1 is no class, 3 is one
      CAPTURE(name_of(dtype));
      Graph graph;
      const Node logits = graph.input("logits", {dtype, {4, 4}});
      const Node labels = labels_of(graph, 4);
      std::vector<Node> wanted;
      for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
        wanted.push_back(softmax_cross_entropy(logits, labels, {.reduction = reduction, .ignore = ignored}));
        wanted.push_back(gradients(sum(wanted.back()), {logits})[0]);
      }
      const auto results = Runner(graph, wanted, test_backend())(
          {Tensor(logits.type()), Tensor::of<std::int64_t>({4}, {1, ignored, 2, ignored})});
      const double each = Tensor::scalar(std::log(4.0)).cast(dtype).to_doubles()[0];
      CHECK(results[0].to_doubles()[0] == doctest::Approx(each).epsilon(1e-3));
      CHECK(results[2].to_doubles()[0] == doctest::Approx(2 * each).epsilon(1e-3));
      check_close(results[4], {each, 0, each, 0}, 1e-2);
      const std::vector<double> grad{0.25, -0.75, 0.25,  0.25, 0, 0, 0, 0,
                                     0.25, 0.25,  -0.75, 0.25, 0, 0, 0, 0};
      CHECK(results[3].to_doubles() == grad);
      CHECK(results[5].to_doubles() == grad);
      for (std::size_t i = 0; i < grad.size(); ++i) CHECK(results[1].to_doubles()[i] == grad[i] / 2);
    }
}

TEST_CASE("the loss of samples that are all ignored is 0") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float32, {2, 3}});
  const Node loss = softmax_cross_entropy(logits, labels_of(graph, 2), {.ignore = -100});
  const auto results = Runner(graph, {loss, gradients(loss, {logits})[0]}, test_backend())(
      {Tensor(logits.type()), Tensor::of<std::int64_t>({2}, {-100, -100})});
  CHECK(results[0].to_doubles()[0] == 0);
  CHECK(results[1].to_doubles() == std::vector<double>(6, 0));
}

TEST_CASE("a label that is neither a class nor ignored is still out of range") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float32, {2, 3}});
  const Node loss = softmax_cross_entropy(logits, labels_of(graph, 2), {.ignore = -1});
  const auto results = Runner(graph, {loss, gradients(loss, {logits})[0]}, test_backend())(
      {Tensor(logits.type()), Tensor::of<std::int64_t>({2}, {-2, 1})});
  CHECK(std::isnan(results[0].to_doubles()[0]));
  CHECK(std::isnan(results[1].to_doubles()[0]));
}

TEST_CASE("only a loss that ignores a label prints which") {
  Graph graph;
  const Node logits = graph.input("logits", {DType::float32, {3, 4}});
  const Node labels = labels_of(graph, 3);
  const auto options_of = [&](const CrossEntropyOptions& options) {
    const Node loss = softmax_cross_entropy(logits, labels, options);
    return to_string(graph.record(loss.id()).op->description());
  };
  CHECK(options_of({}) == "reduction=mean");
  CHECK(options_of({.reduction = Reduction::sum, .ignore = -1}) == "reduction=sum, ignore=-1");
}

}  // namespace plexaura::testing::cross_entropy_test
