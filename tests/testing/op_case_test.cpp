#include "testing/op_case.h"

#include <doctest/doctest.h>

#include "core/loops/types.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/support/backend.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::op_case_test {

namespace {

OpCase negated(Expected expected) {
  return {"an op", "neg", [](Graph&, auto x) { return std::vector{-x[0]}; }, {{{3}}}, std::move(expected)};
}

// The op x -> x^2, whose gradient in float32 has this relative error, like that of a faulty backend.
class SquareOff final : public OpOf<SquareOff> {
 public:
  explicit SquareOff(double off) : off_(off) {}
  std::string_view name() const override { return "square"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override {
    const Node& x = request.inputs[0];
    return {request.grad_outputs[0] * x * (x.dtype() == DType::float32 ? 2 * (1 + off_) : 2)};
  }
  void compute(const HostCall& call) const {
    portable::dispatch_floating(call.inputs[0].dtype(), [&]<class T>(std::type_identity<T>) {
      for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
        const auto x = static_cast<portable::Compute<T>>(call.inputs[0].as<T>()[i]);
        call.outputs[0].as<T>()[i] = T(x * x);
      }
    });
  }

 private:
  double off_;
};

// Returns a case with two outputs; the gradient of the second has this error.
OpCase off_by(double off) {
  const auto build = [off](Graph&, auto x) {
    return std::vector{neg(x[0]), apply(std::make_shared<SquareOff>(off), {x[0]})};
  };
  return {"an op", "square", build, {{{3}, between(1, 2)}}, {}};
}

}  // namespace

TEST_CASE("a wrong gradient of any output is found") {
  CHECK(check_backward(off_by(0), DType::float32, oracle(), oracle()).passed());
  const CaseReport report = check_backward(off_by(0.5), DType::float32, oracle(), oracle());
  CHECK(report.failures.find("an op in float32 on portable: gradient 0: element") != std::string::npos);
}

TEST_CASE("gradients may be further off than results, as far as the case says") {
  OpCase slack = off_by(2e-5);  // the tolerance of float32 is 2e-6
  slack.gradient_slack = 100;
  CHECK(check_backward(slack, DType::float32, oracle(), oracle()).passed());
  slack.gradient_slack = 1;
  CHECK(!check_backward(slack, DType::float32, oracle(), oracle()).passed());
}

TEST_CASE("a report counts the derivatives that were compared, too") {
  const OpCase good = negated([](auto x) {
    Tensor expected = x[0];
    for (double& value : expected.template as<double>()) value = -value;
    return std::vector{expected};
  });
  const CaseReport report = check(good, oracle(), oracle());
  CHECK_MESSAGE(report.passed(), report.failures);
  CHECK(report.comparisons > check_gradients(good, oracle()).compared);
}

TEST_CASE("a case says what a backend got wrong, and where") {
  const CaseReport report = check_forward(negated([](auto x) {
                                            Tensor wrong = x[0];
                                            for (double& value : wrong.as<double>()) value = -value;
                                            wrong.as<double>()[1] += 1e-9;
                                            return std::vector{wrong};
                                          }),
                                          DType::float64, oracle());
  CHECK(report.failures.find("an op in float64 on portable: output 0: element 1") != std::string::npos);
}

TEST_CASE("an op that is not what it says of itself does not pass") {
  // The op x -> -x with a view trait, which claims that no element changes.
  class ChangesNothing final : public OpOf<ChangesNothing> {
   public:
    std::string_view name() const override { return "neg_of_this_test"; }
    std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
    std::vector<Node> vjp(const VjpRequest& request) const override { return {-request.grad_outputs[0]}; }
    OpTraits traits() const override { return {.view = true}; }
    void compute(const HostCall& call) const {
      for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i)
        call.outputs[0].as<double>()[i] = -call.inputs[0].as<double>()[i];
    }
  };
  OpCase lies = negated([](auto x) {
    Tensor expected = x[0];
    for (double& value : expected.template as<double>()) value = -value;
    return std::vector{expected};
  });
  CHECK(check_op(lies, oracle()).passed());
  lies.op = "neg_of_this_test";
  lies.build = [](Graph&, auto x) { return std::vector{apply(std::make_shared<ChangesNothing>(), {x[0]})}; };
  CHECK(check_op(lies, oracle()).failures.find("says that it is a view") != std::string::npos);
}

TEST_CASE("a case must expect something of every output") {
  CHECK(user_error([] { check_forward(negated({}), DType::float64, oracle()); }).find("'an op'") !=
        std::string::npos);
  const CaseReport report =
      check_forward(negated([](auto) { return std::vector<Tensor>{}; }), DType::float64, oracle());
  CHECK(report.failures.find("1 values where 0 were expected") != std::string::npos);
}

TEST_CASE("a case of misuse must be refused, with the words that help") {
  const auto build = [](Graph& graph) { exp(graph.input("x", {DType::int64, {2}})); };
  CHECK(check(WrongCase{"exp of integers", "exp", build, {"cast()"}}).passed());
  CHECK(!check(WrongCase{"exp of integers", "exp", build, {"no such word"}}).passed());
  CHECK(!check(WrongCase{"exp of floats",
                         "exp",
                         [](Graph& graph) {
                           exp(graph.input("x", {DType::float32, {2}}));
                         },
                         {}})
             .passed());
}

}  // namespace plexaura::testing::op_case_test
