#include "core/testing/check_gradients.h"

#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing {

namespace {

enum class Fault { none, factor, no_gradient, second };

// y = x^2 of a square matrix, with a vjp that is wrong on purpose.
class Suspect final : public Op {
 public:
  explicit Suspect(Fault fault) : fault_(fault) {}
  std::string_view name() const override { return "square"; }  // and its kernel
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node& x = request.inputs[0];
    const Node& grad = request.grad_outputs[0];
    switch (fault_) {
      case Fault::factor:
        return {grad * x * 2.001};
      case Fault::no_gradient:
        return {Node()};
      case Fault::second:
        return {grad * stop_gradient(x) * 2};
      default:
        return {grad * x * 2};
    }
  }

 private:
  Fault fault_;
};

GradientReport checked(Fault fault) {
  const auto build = [=](Graph&, std::span<const Node> x) {
    return std::vector{apply(std::make_shared<Suspect>(fault), {x[0]})};
  };
  return check_gradients(build, {Tensor::of<double>({2, 2}, {0.5, -1, 2, 1.5})}, oracle());
}

bool names(const GradientReport& report, std::string_view check) {
  for (const GradientEntry& entry : report.failures)
    if (entry.check == check) return true;
  return false;
}

}  // namespace

TEST_CASE("the gradient checker passes what is right") {
  const GradientReport report = checked(Fault::none);
  CHECK(report.passed);
  CHECK(report.compared > 20);
  CHECK(report.worst < 1e-9);
  CHECK(report.worst_second < 1e-9);
}

TEST_CASE(
    "the gradient checker finds a wrong factor, a gradient that is missing, and a second derivative that "
    "is") {
  const GradientReport factor = checked(Fault::factor);
  CHECK(!factor.passed);
  CHECK(names(factor, "gradient"));
  CHECK(names(factor, "direction"));
  CHECK(names(factor, "jacobian"));
  CHECK(!checked(Fault::no_gradient).passed);
  const GradientReport second = checked(Fault::second);
  CHECK(!second.passed);
  CHECK(!names(second, "gradient"));
  CHECK(names(second, "second"));
}

TEST_CASE("the report says which derivative, both values and the error") {
  const std::string text = to_string(checked(Fault::factor));
  for (const char* part :
       {"gradient by input 0 [0,1]: analytic", "numeric", "relative error 5.0e-04", "limit 1e-06"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

TEST_CASE("the gradient checker wants float64 and a floating output") {
  const auto same = [](Graph&, std::span<const Node> x) { return std::vector{x[0]}; };
  CHECK(user_error([&] { check_gradients(same, {Tensor::scalar(1.0F)}, oracle()); }).find("float64") !=
        std::string::npos);
  CHECK(user_error([&] {
          check_gradients(same, {Tensor::scalar(std::int64_t{1})}, oracle());
        }).find("floating output") != std::string::npos);
}

}  // namespace plexaura::testing
