#include "core/ops/softmax.h"

#include <cmath>
#include <doctest/doctest.h>

#include "testing/run.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::softmax_test {

namespace {

OpCase along(const std::string& op, Shape shape, std::int64_t axis) {
  const bool logarithm = op == "log_softmax";
  return {
      op + " of " + to_string(shape) + " along " + std::to_string(axis),
      op,
      [=](Graph&, auto x) { return std::vector{logarithm ? log_softmax(x[0], axis) : softmax(x[0], axis)}; },
      {{std::move(shape), between(-2, 2)}},
      [=](auto x) {
        return std::vector{logarithm ? reference::log_softmax(x[0], axis) : reference::softmax(x[0], axis)};
      }};
}

const Cases cases({
    along("softmax", {3, 5}, -1),
    along("softmax", {3, 5}, 0),
    along("softmax", {2, 17, 3}, 1),
    along("softmax", {3, 1}, 1),
    along("softmax", {0, 4}, 1),
    along("softmax", {4, 0}, 1),
    along("log_softmax", {3, 5}, -1),
    along("log_softmax", {2, 3, 4}, 1),
    along("log_softmax", {3, 1}, 1),
    along("log_softmax", {3, 5}, 0),
    along("log_softmax", {0, 4}, 1),
});

WrongCase no_axis(const std::string& op, Node (*function)(Operand, std::int64_t), std::int64_t axis) {
  return {op + ", axis " + std::to_string(axis) + ", which is not there",
          op,
          [=](Graph& graph) {
            function(graph.input("x", {DType::float32, {2, 3}}), axis);
          },
          {"axis " + std::to_string(axis) + " does not exist"}};
}

const WrongCases wrong({no_axis("softmax", softmax, 2), no_axis("log_softmax", log_softmax, 2),
                        no_axis("softmax", softmax, -3)});

}  // namespace

TEST_CASE("softmax: values, gradients, second derivatives") { check_all(cases); }
TEST_CASE("softmax: what it refuses") { check_all(wrong); }

TEST_CASE("softmax and its logarithm are right where e^x is not") {
  Graph graph;
  const Node x = graph.input("x", {DType::float32, {3}});
  const auto results = Runner(graph, {softmax(x), log_softmax(x)},
                              test_backend())({Tensor::of<float>({3}, {1000, 999, -1000})});
  CHECK(results[0].to_doubles()[0] == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(results[1].to_doubles()[0] == doctest::Approx(-std::log1p(std::exp(-1.0))));
  CHECK(results[1].to_doubles()[2] == doctest::Approx(-2000 - std::log1p(std::exp(-1.0))));
}

TEST_CASE("softmax and log_softmax are different ops, and so are those along different axes") {
  CHECK(!(SoftmaxOp(SoftmaxOp::Kind::softmax, {1}) == SoftmaxOp(SoftmaxOp::Kind::log_softmax, {1})));
  CHECK(!(SoftmaxOp(SoftmaxOp::Kind::softmax, {0}) == SoftmaxOp(SoftmaxOp::Kind::softmax, {1})));
  CHECK(SoftmaxOp(SoftmaxOp::Kind::softmax, {1}) == SoftmaxOp(SoftmaxOp::Kind::softmax, {1}));
}

}  // namespace plexaura::testing::softmax_test
