#include "testing/check_loss.h"

#include <cmath>
#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/ops/all_reduce.h"
#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::check_loss_test {

namespace {

// The hyperbolic tangent, with a gradient of the wrong sign if it is asked for.
class Squash final : public OpOf<Squash> {
 public:
  explicit Squash(bool wrong) : wrong_(wrong) {}
  std::string_view name() const override { return "squash"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node slope = 1 - square(request.outputs[0]);
    return {request.grad_outputs[0] * (wrong_ ? -slope : slope)};
  }
  void compute(const HostCall& call) const {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i)
      call.outputs[0].as<double>()[i] = std::tanh(call.inputs[0].as<double>()[i]);
  }

 private:
  bool wrong_;
};

struct Net {
  Graph graph;
  Node loss;
  std::uint32_t line = 0;  // of the op that may be wrong

  explicit Net(bool wrong) {
    const Node x = graph.input("x", {DType::float64, {3, 2}});
    const Node labels = graph.input("labels", {DType::int64, {3}});
    const Node w = graph.parameter("w", {DType::float64, {2, 4}});
    const Graph::Scope scope(graph, "layer1");
    line = std::source_location::current().line() + 1;
    const Node h = apply(std::make_shared<Squash>(wrong), {matmul(x, w)});
    loss = softmax_cross_entropy(dropout(h * 2, {.p = 0.3}), labels);
  }
};

std::vector<Feed> values() {
  Random random(1);
  return {{"x", random.tensor({DType::float64, {3, 2}}, -1, 1)},
          {"w", random.tensor({DType::float64, {2, 4}}, -1, 1)},
          {"labels", Tensor::of({3}, std::vector<std::int64_t>{0, 3, 1})}};
}

}  // namespace

TEST_CASE("the gradients of a loss with right ops pass, of both orders") {
  const Net net(false);
  const std::size_t nodes = net.graph.size();
  const GradientReport report = check_gradients(net.loss, values(), oracle());
  CHECK_MESSAGE(report.passed, to_string(report));
  CHECK(report.compared > 100);
  CHECK(report.worst_second > 0);
  CHECK(net.graph.size() == nodes);
}

TEST_CASE("an op of a loss with a gradient of the wrong sign is named with its line and module") {
  const Net net(true);
  const GradientReport report = check_gradients(net.loss, values(), oracle());
  CHECK_FALSE(report.passed);
  REQUIRE(report.places.size() == 1);
  CAPTURE(report.places[0]);
  CHECK(report.places[0].find("the gradient of squash") != std::string::npos);
  CHECK(report.places[0].find("check_loss_test.cpp:" + std::to_string(net.line) + " (layer1)") !=
        std::string::npos);
}

TEST_CASE("ops that do not reach the loss are neither computed nor blamed") {
  Net net(true);
  const Node x(net.graph, Value{0, 0});
  all_reduce_sum(apply(std::make_shared<Squash>(true), {net.graph.input("more", x.type())}));
  const Node loss = sum(square(x));
  apply(std::make_shared<Squash>(true), {x});
  const GradientReport report = check_gradients(loss, {values()[0]}, oracle());
  CHECK_MESSAGE(report.passed, to_string(report));
  CHECK(report.places.empty());
  const GradientReport wrong = check_gradients(net.loss, values(), oracle());
  REQUIRE(wrong.places.size() == 1);
  CHECK(wrong.places[0].find("check_loss_test.cpp:" + std::to_string(net.line)) != std::string::npos);
}

TEST_CASE("values of a loss that are missing, not needed, or of another type are named") {
  const Net net(false);
  const auto error = [&](const std::vector<Feed>& given) {
    return user_error([&] { check_gradients(net.loss, given, oracle()); });
  };
  const std::vector<Feed> all = values();
  CHECK(error({all[0], all[1]}).find("'labels' has no value; give it one of int64[3]") != std::string::npos);
  CHECK(error({all[0], all[1], all[2], {"y", Tensor()}}).find("it does not need 'y'") != std::string::npos);
  CHECK(error({all[0], all[0], all[1], all[2]}).find("'x' has two values") != std::string::npos);
  CHECK(error({all[0], {"w", Tensor()}, all[2]}).find("'w' is float64[2,4] and its value float32[]") !=
        std::string::npos);
}

}  // namespace plexaura::testing::check_loss_test
