#include <doctest/doctest.h>
#include <string>

#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/ops/unary.h"
#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/pattern.h"

// Mistakes known from other frameworks, at the boundaries between ops, passes and memory.

namespace plexaura::testing::traps_test {

TEST_CASE("merging keeps apart what differs in any option, and changes no result") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3, 3}});
  const std::vector<Node> outputs{softmax(x, 0),
                                  softmax(x, 1),
                                  log_softmax(x, 0),
                                  log_softmax(x, 1),
                                  softmax(x, 1),
                                  sum(x, {.axes = {0}}),
                                  sum(x, {.axes = {1}}),
                                  mean(x, {.axes = {1}}),
                                  permute(x, {1, 0}),
                                  cast(cast(x, DType::int32), DType::float64),
                                  cast(cast(x, DType::uint8), DType::float64)};
  const std::vector<Tensor> input{pattern({3, 3})};
  const auto together = Runner(graph, outputs, test_backend())(input);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    CHECK(together[i] == Runner(graph, {outputs[i]}, test_backend(), {.optimise = false})(input)[0]);
  CHECK(!(together[0] == together[1]));
  CHECK(!(together[1] == together[3]));
}

TEST_CASE("an intermediate value that is asked for is not overwritten by a later one") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {64}});
  std::vector<Node> chain{x};
  for (int i = 0; i < 12; ++i) chain.push_back(tanh(chain.back() * 1.5 + 0.25));
  const Tensor value = pattern({64});
  Runner everything(graph, {chain.begin() + 1, chain.end()}, test_backend(), {.keep_all = true});
  const auto kept = everything({value});
  for (std::size_t i = 1; i < chain.size(); ++i)
    CHECK(kept[i - 1] == Runner(graph, {chain[i]}, test_backend())({value})[0]);
}

TEST_CASE("a program of constants that are too large to fold runs without a parameter store") {
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {}});
  const Node large = broadcast_to(graph.constant(Tensor::scalar(0.5)), {500, 600});
  Runner runner(graph, {x + sum(large)}, test_backend());
  CHECK(runner({Tensor::scalar(1.0)})[0].to_doubles()[0] == 150001);
  CHECK(runner({Tensor::scalar(2.0)})[0].to_doubles()[0] == 150002);
}

}  // namespace plexaura::testing::traps_test
