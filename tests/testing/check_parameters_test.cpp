#include "testing/check_parameters.h"

#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::check_parameters_test {

namespace {

enum class Wrong : std::uint8_t { nothing, first, second };

// The hyperbolic tangent, whose first or second derivative may be wrong.
class Bend final : public OpOf<Bend> {
 public:
  explicit Bend(Wrong wrong) : wrong_(wrong) {}
  std::string_view name() const override { return "bend"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node y = wrong_ == Wrong::second ? stop_gradient(request.outputs[0]) : request.outputs[0];
    return {request.grad_outputs[0] * (wrong_ == Wrong::first ? 1.01 - square(y) : 1 - square(y))};
  }
  void compute(const HostCall& call) const {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i)
      call.outputs[0].as<double>()[i] = std::tanh(call.inputs[0].as<double>()[i]);
  }

 private:
  Wrong wrong_;
};

// A net with dropout and two layers, of which one op may be wrong.
struct Net {
  Graph graph;
  Node loss;
  std::uint32_t line = 0;  // of the op that may be wrong

  explicit Net(Wrong wrong) {
    const Node x = graph.input("x", {DType::float64, {16, 8}});
    const Node labels = graph.input("labels", {DType::int64, {16}});
    const Node w = graph.parameter("w", {DType::float64, {8, 200}});
    const Node b = graph.parameter("b", {DType::float64, {200}});
    const Node v = graph.parameter("v", {DType::float64, {200, 4}});
    line = std::source_location::current().line() + 1;
    const Node h = apply(std::make_shared<Bend>(wrong), {relu(matmul(x, w) + b)});
    loss = softmax_cross_entropy(matmul(dropout(h, {.p = 0.3}), v), labels);
  }

  ParameterReport check(const ParameterCheckOptions& options = {}) const {
    Random random(1);
    Tensor labels(TensorType{DType::int64, {16}});
    return check_parameters(loss,
                            {{"x", random.tensor({DType::float64, {16, 8}}, -1, 1)},
                             {"labels", std::move(labels)},
                             {"w", random.tensor({DType::float64, {8, 200}}, -0.5, 0.5)},
                             {"b", random.tensor({DType::float64, {200}}, -0.5, 0.5)},
                             {"v", random.tensor({DType::float64, {200, 4}}, -0.5, 0.5)}},
                            {"w", "b", "v"}, test_backend(), options);
  }
};

}  // namespace

// 3,200 kinks of relu, of which some are near any point.
TEST_CASE("the gradients of all parameters agree with differences, also beside the kinks of relu") {
  const ParameterReport report = Net(Wrong::nothing).check();
  CHECK(report.passed);
  CHECK(report.why_no_second.empty());
  CHECK(report.places.empty());
  REQUIRE(report.parameters.size() == 3);
  CHECK(report.parameters[0].name == "w");
  CHECK(report.parameters[0].shape == Shape{8, 200});
  for (const ParameterGradient& parameter : report.parameters) {
    CAPTURE(parameter.name);
    CHECK(parameter.first < 1e-6);
    CHECK(parameter.second < 1e-5);
  }
}

TEST_CASE("an op whose gradient is wrong is named, and so are the parameters below it") {
  const Net net(Wrong::first);
  const ParameterReport report = net.check();
  CHECK(!report.passed);
  CHECK(report.parameters[0].first > 1e-4);
  CHECK(report.parameters[1].first > 1e-4);
  CHECK(report.parameters[2].first < 1e-6);
  REQUIRE(!report.places.empty());
  const std::string place = report.places.back();
  CAPTURE(place);
  CHECK(place.find("the gradient of bend %") == 0);
  CHECK(place.find(fmt::format("check_parameters_test.cpp:{} is wrong by itself", net.line)) !=
        std::string::npos);
}

TEST_CASE("an op whose second derivative is wrong is named") {
  const Net net(Wrong::second);
  const ParameterReport report = net.check();
  CHECK(!report.passed);
  CHECK(report.parameters[0].first < 1e-6);
  CHECK(report.parameters[0].second > 1e-4);
  REQUIRE(!report.places.empty());
  CHECK(report.places.back().find("the gradient of bend %") == 0);
  const ParameterReport first = net.check({.second_order = false});
  CHECK(first.passed);
  CHECK(first.why_no_second == "only the first were asked for");
}

TEST_CASE("what cannot be checked is an error") {
  Graph graph;
  const Node w = graph.parameter("w", {DType::float64, {2}});
  const Tensor value = Tensor::of<double>({2}, {1, 2});
  CHECK(user_error([&] {
          check_parameters(sum(w), {{"w", value}}, {"v"}, test_backend());
        }) == "check_parameters: the parameter 'v' has no value; give it one");
  CHECK(user_error([&] {
          check_parameters(w * 2, {{"w", value}}, {"w"}, test_backend());
        }).ends_with("of type float64[2]; give a floating scalar"));
  CHECK(user_error([&] {
          check_parameters(sum(w), {}, {}, test_backend());
        }).find("'w' has no value; give it one of float64[2]") != std::string::npos);
}

}  // namespace plexaura::testing::check_parameters_test
