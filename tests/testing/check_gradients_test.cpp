#include "testing/check_gradients.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

#include "core/ops/binary.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/unary.h"
#include "testing/values.h"
#include "tests/support/backend.h"
#include "tests/support/cases.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::check_gradients_test {

namespace {

using Vjp = std::function<std::vector<Node>(const VjpRequest& request)>;

// The name and the kernel of an op of this test.
struct Function {
  std::string_view name;
  void (*compute)(const HostCall& call);
};

// An op whose outputs have the type of its first input, with a vjp that the test chooses.
class Suspect final : public OpOf<Suspect> {
 public:
  Suspect(Function function, Vjp vjp, std::size_t outputs = 1)
      : function_(function), vjp_(std::move(vjp)), outputs_(outputs) {}
  std::string_view name() const override { return function_.name; }
  void compute(const HostCall& call) const { function_.compute(call); }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    return std::vector(outputs_, inputs[0]);
  }
  std::vector<Node> vjp(const VjpRequest& request) const override { return vjp_(request); }

 private:
  Function function_;
  Vjp vjp_;
  std::size_t outputs_;
};

// Kernels of x -> x^2, x -> 0, x -> |x|^1.5, and x -> x^2, x^3.
void run_square(const HostCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    const double x = call.inputs[0].as<double>()[i];
    call.outputs[0].as<double>()[i] = x * x;
  }
}
void run_nothing(const HostCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) call.outputs[0].as<double>()[i] = 0;
}
void run_steep(const HostCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i)
    call.outputs[0].as<double>()[i] = std::pow(std::abs(call.inputs[0].as<double>()[i]), 1.5);
}
void run_powers(const HostCall& call) {
  for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
    const double x = call.inputs[0].as<double>()[i];
    if (call.outputs[0].data != nullptr) call.outputs[0].as<double>()[i] = x * x;
    if (call.outputs[1].data != nullptr) call.outputs[1].as<double>()[i] = x * x * x;
  }
}

// The kernels of the product of all operands, and of the first operand.
void run_product(const HostCall& call) {
  for (std::int64_t i = 0; i < call.outputs[0].elements(); ++i) {
    double product = 1;
    for (const HostView& input : call.inputs) product *= input.as<double>()[i];
    call.outputs[0].as<double>()[i] = product;
  }
}
void run_first(const HostCall& call) { copy_bytes(call.inputs[0], call.outputs[0]); }

constexpr Function square_of_this_test{"square_of_this_test", run_square};
constexpr Function nothing_of_this_test{"nothing_of_this_test", run_nothing};
constexpr Function steep_of_this_test{"power_1.5_of_this_test", run_steep};
constexpr Function powers_of_this_test{"powers_of_this_test", run_powers};
constexpr Function product_of_this_test{"product_of_this_test", run_product};
constexpr Function first_of_this_test{"first_of_this_test", run_first};

BuildFunction built(Function function, const Vjp& vjp, double factor = 1) {
  return [=](Graph&, std::span<const Node> x) {
    if (x.size() == 1) return std::vector{factor * apply(std::make_shared<Suspect>(function, vjp), {x[0]})};
    return std::vector{factor * apply(std::make_shared<Suspect>(function, vjp), {x[0], x[1]})};
  };
}

// Returns a vjp of x^2 with this factor in place of 2.
Vjp of_square(double factor) {
  return [=](const VjpRequest& request) {
    return std::vector{request.grad_outputs[0] * request.inputs[0] * factor};
  };
}

const Tensor some = Tensor::of<double>({2, 2}, {0.5, -1, 2, 1.5});

GradientReport checked(const BuildFunction& build, const std::vector<Tensor>& inputs = {some}) {
  return check_gradients(build, inputs, oracle());
}

bool names(const GradientReport& report, std::string_view check) {
  for (const GradientEntry& entry : report.failures)
    if (entry.check == check) return true;
  return false;
}

}  // namespace

TEST_CASE("the gradient checker passes what is right") {
  const GradientReport report = checked(built(square_of_this_test, of_square(2)));
  CHECK(report.passed);
  CHECK(report.compared > 20);
  CHECK(report.worst < 1e-9);
  CHECK(report.worst_second < 1e-9);
}

TEST_CASE("the gradient checker finds a wrong factor, and a gradient that is missing") {
  const GradientReport factor = checked(built(square_of_this_test, of_square(2.001)));
  CHECK(!factor.passed);
  CHECK(names(factor, "gradient"));
  CHECK(names(factor, "jacobian"));
  CHECK(!checked(built(square_of_this_test, [](const VjpRequest&) { return std::vector{Node()}; })).passed);
}

TEST_CASE("the gradient checker finds a second derivative that is missing") {
  const GradientReport report = checked(built(square_of_this_test, [](const VjpRequest& request) {
    return std::vector{request.grad_outputs[0] * stop_gradient(request.inputs[0]) * 2};
  }));
  CHECK(!report.passed);
  CHECK(!names(report, "gradient"));
  CHECK(names(report, "second gradient"));
}

TEST_CASE("the gradient checker finds second derivatives that are not symmetric") {
  // The gradient of a b with respect to a is b; this vjp leaves a part of it out.
  const GradientReport report =
      checked(built(product_of_this_test,
                    [](const VjpRequest& request) {
                      const Node& grad = request.grad_outputs[0];
                      const Node& a = request.inputs[0];
                      const Node& b = request.inputs[1];
                      return std::vector{grad * (0.5 * b + stop_gradient(0.5 * b)), grad * a};
                    }),
              {some, some});
  CHECK(names(report, "second symmetry"));
}

TEST_CASE("a wrong gradient is found however small the function is") {
  CHECK(checked(built(square_of_this_test, of_square(2), 1e-12)).passed);
  CHECK(!checked(built(square_of_this_test, of_square(4), 1e-12)).passed);
  CHECK(!checked(built(square_of_this_test, of_square(2.002), 1e-8)).passed);
  CHECK(!checked(built(square_of_this_test, of_square(2.002), 1e-200)).passed);
}

TEST_CASE("one small element of many that is wrong by half is found, and named") {
  const std::int64_t count = 4000;
  std::vector<double> slopes(count, 1.0);
  std::vector<double> factors(count, 1.0);
  slopes[3210] = 1e-4;
  factors[3210] = 0.5;
  const Tensor slope = Tensor::of<double>({count}, slopes);
  const Tensor factor = Tensor::of<double>({count}, factors);
  const auto build = [&](Graph& graph, std::span<const Node> x) {
    const auto vjp = [&](const VjpRequest& request) {
      const Node& by = request.inputs[1];
      return std::vector{request.grad_outputs[0] * by * request.inputs[0].graph().constant(factor), Node()};
    };
    return std::vector{
        apply(std::make_shared<Suspect>(product_of_this_test, vjp), {x[0], graph.constant(slope)})};
  };
  GradientOptions options;
  options.second_order = false;
  const GradientReport report =
      check_gradients(build, {Random(1).tensor({DType::float64, {count}}, -1, 1)}, oracle(), options);
  CHECK(names(report, "gradient"));
  for (const GradientEntry& entry : report.failures)
    if (entry.input == "input 0") CHECK(entry.index == "[3210]");
}

TEST_CASE("a gradient that is wrong only when both operands want one is found, or only when one does") {
  const auto wrong_where = [](bool both) {
    return [=](const VjpRequest& request) {
      const bool wanted_both = request.wanted[0] && request.wanted[1];
      const Node& grad = request.grad_outputs[0];
      return std::vector{grad * request.inputs[1] * (wanted_both == both ? 3 : 1), grad * request.inputs[0]};
    };
  };
  CHECK(names(checked(built(product_of_this_test, wrong_where(true)), {some, some}), "gradient"));
  CHECK(
      names(checked(built(product_of_this_test, wrong_where(false)), {some, some}), "gradient wanted alone"));
}

TEST_CASE("a gradient that is wrong only where an output has no cotangent is found") {
  const auto report_where = [](bool wrong) {
    const auto vjp = [=](const VjpRequest& request) {
      const Node& x = request.inputs[0];
      const Node& of_square = request.grad_outputs[0];
      const Node& of_cube = request.grad_outputs[1];
      if (of_cube.is_empty()) return std::vector{of_square * x * (wrong ? 3 : 2)};
      if (of_square.is_empty()) return std::vector{of_cube * square(x) * 3};
      return std::vector{of_square * x * 2 + of_cube * square(x) * 3};
    };
    return checked([=](Graph&, std::span<const Node> x) {
      const std::vector<Operand> operands{x[0]};
      return apply_all(std::make_shared<Suspect>(powers_of_this_test, vjp, 2), operands);
    });
  };
  CHECK_MESSAGE(report_where(false).passed, to_string(report_where(false)));
  CHECK(names(report_where(true), "gradient without a cotangent of output 1"));
}

TEST_CASE("a failure says under the cotangent of which output a gradient is wrong") {
  for (const std::size_t wrong : {0, 1}) {
    const auto build = [&](Graph&, std::span<const Node> x) {
      std::vector<Node> outputs;
      for (const std::size_t output : {0, 1})
        outputs.push_back(apply(
            std::make_shared<Suspect>(square_of_this_test, of_square(output == wrong ? 3 : 2)), {x[0]}));
      return outputs;
    };
    const GradientReport report = checked(build, {Tensor::of<double>({1}, {0.5})});
    const auto is_named = [&](std::size_t output) {
      const std::string end = " of output " + std::to_string(output);
      return std::ranges::any_of(report.failures, [&](const GradientEntry& entry) {
        return entry.check == "gradient" && entry.index.ends_with(end);
      });
    };
    CHECK(is_named(wrong));
    CHECK(!is_named(1 - wrong));
  }
}

TEST_CASE("as many random cotangents are drawn as are asked for") {
  const auto compared = [](std::int64_t draws) {
    GradientOptions options;
    options.draws = draws;
    options.second_order = false;
    return check_gradients(built(square_of_this_test, of_square(2)), {some}, oracle(), options).compared;
  };
  CHECK(compared(2) - compared(1) == some.elements() + 1);  // one more for all inputs together
  CHECK(compared(3) - compared(2) == compared(2) - compared(1));
}

TEST_CASE("the tolerances are those that are given") {
  GradientOptions options;
  CHECK(!check_gradients(built(square_of_this_test, of_square(2.001)), {some}, oracle(), options).passed);
  options.tolerance = options.second_tolerance = 1e-2;
  const GradientReport report =
      check_gradients(built(square_of_this_test, of_square(2.001)), {some}, oracle(), options);
  CHECK_MESSAGE(report.passed, to_string(report));
}

TEST_CASE("a gradient that is not linear in the cotangent is found") {
  CHECK(!checked(built(square_of_this_test, [](const VjpRequest& request) {
           return std::vector{abs(request.grad_outputs[0]) * request.inputs[0] * 2};
         })).passed);
}

TEST_CASE("an exception from a vjp is a failure and is shown, even where the function is constant") {
  const GradientReport report = checked(built(
      nothing_of_this_test, [](const VjpRequest&) -> std::vector<Node> { throw UserError("so it is"); }));
  CHECK(!report.passed);
  CHECK(to_string(report).find("so it is") != std::string::npos);
}

TEST_CASE("a gradient that is not a number is a failure, and is not reported as a small error") {
  const GradientReport report = checked(built(square_of_this_test, [](const VjpRequest& request) {
    return std::vector{request.grad_outputs[0] * log(-square(request.inputs[0]))};
  }));
  CHECK(!report.passed);
  CHECK(report.worst == HUGE_VAL);
  CHECK(to_string(report).find("worst relative error inf") != std::string::npos);
  for (const GradientEntry& entry : report.failures)
    if (entry.check == "gradient" && entry.index == "[0,0]") CHECK(entry.numeric != 0);
}

TEST_CASE("a report says what was compared, and that rounding alone explains the errors") {
  const auto linear = [](Graph&, std::span<const Node> x) { return std::vector{x[0] * 3}; };
  const auto curved = [](Graph&, std::span<const Node> x) { return std::vector{pow(x[0], 9)}; };
  const std::vector<Tensor> some{Tensor::of<double>({2}, {0.5, 1})};
  CHECK(to_string(checked(linear, some)).find(" first derivatives compared, no error beyond rounding; ") !=
        std::string::npos);
  CHECK(to_string(checked(curved, some)).find(" first derivatives compared, worst relative error ") !=
        std::string::npos);
  const GradientReport report =
      check_gradients(linear, some, oracle(), GradientOptions{.second_order = false});
  CHECK(report.compared_second == 0);
  CHECK(to_string(report).find("; no second derivatives compared\n") != std::string::npos);
}

TEST_CASE(
    "a function without a floating input is refused, and one of no elements is not said to be compared") {
  const auto build = [](Graph&, std::span<const Node> x) { return std::vector{cast(x[0], DType::float64)}; };
  CHECK(user_error([&] {
          checked(build, {Tensor::of<std::int64_t>({2}, {1, 2})});
        }).find("no input is floating") != std::string::npos);
  const GradientReport report = check_gradients(build, {Tensor(TensorType{DType::float64, {0}})}, oracle(),
                                                GradientOptions{.second_order = false});
  CHECK(report.compared == 0);
  CHECK(to_string(report).starts_with("no first derivatives compared"));
}

TEST_CASE("a kink is distinguished from a wrong gradient") {
  const auto with_kink = [](Graph&, std::span<const Node> x) { return std::vector{relu(x[0])}; };
  const GradientReport kink = checked(with_kink, {Tensor::of<double>({2}, {0, 1})});
  CHECK(!kink.passed);
  for (const GradientEntry& entry : kink.failures)
    CHECK(entry.note.starts_with("not differentiable here: the slope is"));
  const GradientReport wrong = checked(built(square_of_this_test, of_square(3)));
  for (const GradientEntry& entry : wrong.failures) CHECK(entry.note.empty());
}

TEST_CASE("a slope that changes fast is no kink") {
  // |x|^1.5 has the slope 0 at 0. One-sided differences with step h are h^0.5 and -h^0.5.
  const auto wrong = [](const VjpRequest& request) { return std::vector{request.grad_outputs[0]}; };
  const GradientReport report = checked(built(steep_of_this_test, wrong), {Tensor::of<double>({2}, {0, 0})});
  CHECK(!report.passed);
  for (const GradientEntry& entry : report.failures) CHECK(entry.note.empty());
}

TEST_CASE("outputs that are saved for backward alone are not differentiated") {
  const auto build = [](Graph&, std::span<const Node> x) {
    const Node losses = softmax_cross_entropy(x[0], x[1]);
    return std::vector{losses, output_of(losses, 1)};
  };
  CHECK(checked(build, {some, Tensor::of<std::int64_t>({2}, {0, 1})}).passed);
}

TEST_CASE("the report says which derivative, both values and the error") {
  const std::string text = to_string(checked(built(square_of_this_test, of_square(2.001))));
  for (const char* part :
       {"gradient by input 0 [0,1]: analytic", "numeric", "relative error 5.0e-04", "limit 1e-08"})
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

TEST_CASE("a gradient that is wrong only where both operands are one node is found") {
  const auto wrong = [](const VjpRequest& request) {
    const bool same = request.inputs[0].id() == request.inputs[1].id();
    const Node& grad = request.grad_outputs[0];
    return std::vector{grad * request.inputs[1] * (same ? 2 : 1), grad * request.inputs[0]};
  };
  const GradientReport report = checked(built(product_of_this_test, wrong), {some, some});
  CHECK(names(report, "gradient with input 1 as the same node as input 0"));
  const auto right = [](const VjpRequest& request) {
    const Node& grad = request.grad_outputs[0];
    return std::vector{grad * request.inputs[1], grad * request.inputs[0]};
  };
  CHECK_MESSAGE(checked(built(product_of_this_test, right), {some, some}).passed,
                to_string(checked(built(product_of_this_test, right), {some, some})));
}

TEST_CASE(
    "a function that has no value or no slope where two inputs are one is not wrong, and that is told") {
  const auto distance = [](Graph&, std::span<const Node> x) {
    return std::vector{sqrt(square(x[0] - x[1]))};
  };
  const GradientReport report = checked(distance, {some, Tensor::of<double>({2, 2}, {2, 1, -1, 0})});
  CHECK_MESSAGE(report.passed, to_string(report));
  CHECK(to_string(report).find(
            "input 1 as the same node as input 0, where the function has a kink or no value") !=
        std::string::npos);
}

TEST_CASE(
    "a gradient that is wrong only where two of three inputs are wanted is found, and of more what is not "
    "looked at") {
  const auto wrong = [](const VjpRequest& request) {
    const bool two = request.wanted[0] && request.wanted[1] && !request.wanted[2];
    std::vector<Node> grads;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      Node grad = request.grad_outputs[0];
      for (std::size_t j = 0; j < request.inputs.size(); ++j)
        if (j != i) grad = grad * request.inputs[j];
      grads.push_back(two && i == 1 ? grad * 2 : grad);
    }
    return grads;
  };
  const auto build = [&](Graph&, std::span<const Node> x) {
    return std::vector{apply_all(std::make_shared<Suspect>(product_of_this_test, wrong),
                                 std::vector<Operand>(x.begin(), x.end()))[0]};
  };
  CHECK(names(checked(build, {some, some, some}), "gradient with input 0, input 1 alone wanted"));
  CHECK(names(checked(build, {some, some, some, some}), "gradient with input 0, input 1 alone wanted"));
  const GradientReport five = checked(build, {some, some, some, some, some});
  CHECK(to_string(five).find(
            "not checked: inference mode; other types than float64; sets of wanted inputs, of 5, but one "
            "alone and all but one") != std::string::npos);
}

TEST_CASE("what a large constant hides is counted as not checkable") {
  const auto above = [](double constant, double factor) {
    return checked([=](Graph&, std::span<const Node> x) {
      return std::vector{apply(std::make_shared<Suspect>(square_of_this_test, of_square(factor)), {x[0]}) +
                         constant};
    });
  };
  CHECK(above(0, 2).not_checkable == 0);
  CHECK(to_string(above(0, 2)).find("not checkable") == std::string::npos);
  for (const double constant : {1e4, 1e6, 1e8}) {
    const GradientReport hidden = above(constant, 2 + 2e-12 * constant);
    CHECK(hidden.passed);
    CHECK(hidden.not_checkable > 0);
    CHECK(hidden.excused > 1e-12 * constant);
    CHECK(to_string(hidden).find("not checkable: ") != std::string::npos);
  }
  CHECK(!above(1e8, 2.01).passed);
}

TEST_CASE("a gradient with a number of the step block too many is found") {
  for (const StepScalar scalar :
       {StepScalar::gradient_seed, StepScalar::share, StepScalar::samples, StepScalar::learning_rate,
        StepScalar::step, StepScalar::stop, StepScalar::failed, StepScalar::loss_scale}) {
    const GradientReport report = checked(built(square_of_this_test, [&](const VjpRequest& request) {
      const Node number = request.inputs[0].graph().step_scalar(scalar, DType::float64);
      return std::vector{request.grad_outputs[0] * request.inputs[0] * 2 * number};
    }));
    CHECK(!report.passed);
  }
}

TEST_CASE("a gradient that is returned for an input of whole numbers is a failure") {
  const auto build = [](Graph&, std::span<const Node> x) {
    const auto vjp = [](const VjpRequest& request) {
      return std::vector{request.grad_outputs[0], request.grad_outputs[0]};
    };
    return std::vector{apply(std::make_shared<Suspect>(first_of_this_test, vjp), {x[0], x[1]})};
  };
  const GradientReport report = checked(build, {some, Tensor::of<std::int64_t>({2, 2}, {1, 2, 3, 4})});
  CHECK(!report.passed);
  CHECK(to_string(report).find(
            "returned a gradient for input 1, which is int64[2,2] and has none; return an empty Node") !=
        std::string::npos);
}

TEST_CASE("the report names the first op whose own gradient is wrong, and its line") {
  int line = 0;
  const GradientReport report = checked([&](Graph&, std::span<const Node> x) {
    const Node inner = exp(x[0] * 0.5);
    line = __LINE__ + 1;
    const Node wrong = apply(std::make_shared<Suspect>(square_of_this_test, of_square(3)), {inner});
    return std::vector{tanh(wrong + x[0])};
  });
  REQUIRE(report.places.size() == 1);
  CHECK(report.places[0].starts_with("the gradient of square_of_this_test %"));
  CHECK(report.places[0].find(" of tests/testing/check_gradients_test.cpp:" + std::to_string(line) +
                              " is wrong by itself") != std::string::npos);
  CHECK(to_string(report).find(report.places[0]) != std::string::npos);
}

TEST_CASE("the report names a stop_gradient on the way, and an op at its kink") {
  const GradientReport stopped =
      checked([](Graph&, std::span<const Node> x) { return std::vector{x[0] * stop_gradient(exp(x[0]))}; });
  REQUIRE(stopped.places.size() == 1);
  CHECK(stopped.places[0].starts_with("stop_gradient %"));
  CHECK(stopped.places[0].ends_with(" is on the path from the input"));
  const auto at_kink = [](Graph&, std::span<const Node> x) {
    return std::vector{relu(x[0]) * x[0] + relu(x[0])};
  };
  const GradientReport kink = checked(at_kink, {Tensor::of<double>({2}, {0, 1})});
  CHECK(std::ranges::any_of(kink.places, [](const std::string& place) {
    return place.find("is not differentiable at the values that it meets") != std::string::npos;
  }));
  CHECK(std::ranges::none_of(kink.failures,
                             [](const GradientEntry& entry) { return entry.check.starts_with("second"); }));
}

TEST_CASE("the report tells each wrong element once") {
  const std::string text = to_string(checked(built(square_of_this_test, of_square(3))));
  for (const char* element : {"[0,0]", "[0,1]", "[1,0]", "[1,1]"}) {
    const std::string words = std::string("input 0 ") + element;
    const std::size_t first = text.find(words);
    REQUIRE_MESSAGE(first != std::string::npos, text);
    CHECK_MESSAGE(text.find(words, first + 1) == std::string::npos, text);
  }
  CHECK(text.find("all inputs") == std::string::npos);
}

}  // namespace plexaura::testing::check_gradients_test
