// An op of one's own: a shape rule, a gradient and a reference kernel, without any registration. A model with
// this op learns two numbers, after the op's gradient was checked. Run it alone or as several ranks:
//   build/examples/own_op
//   mpirun -n 2 build/examples/own_op

#include <cmath>
#include <cstdio>
#include <plexaura/plexaura.h>
#include <plexaura/ranks.h>
#include <plexaura/testing.h>

using namespace plexaura;

struct RunningSumOptions {
  bool from_end = false;
  static void fields(auto& self, auto& visitor) { visitor("from_end", self.from_end); }
};

Node running_sum(Operand x, RunningSumOptions options = {});

// Returns the sums of the first 1, 2, ... elements of each row of a matrix, or of the last 1, 2, ...
// elements.
struct RunningSum final : OpOf<RunningSum, RunningSumOptions> {
  using OpOf::OpOf;
  std::string_view name() const override { return "my_running_sum"; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    const TensorType& x = inputs[0];
    if (x.shape.rank() != 2 || x.dtype != DType::float64) throw RuleError("takes a matrix of float64");
    return {x};
  }

  // An element is part of its own sum and of all sums after it, so its gradient is a running sum in the other
  // direction.
  std::vector<Node> vjp(const VjpRequest& request) const override {
    return {running_sum(request.grad_outputs[0], {.from_end = !options().from_end})};
  }

  // The reference kernel, on row-major memory of the host. If a device has no kernel for the op, the host
  // runs this one.
  void compute(const HostCall& call) const {
    const std::int64_t columns = call.inputs[0].shape()[1];
    for (std::int64_t row = 0; row < call.inputs[0].shape()[0]; ++row) {
      double total = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const std::int64_t at = row * columns + (options().from_end ? columns - 1 - i : i);
        call.outputs[0].as<double>()[at] = total += call.inputs[0].as<double>()[at];
      }
    }
  }
};

Node running_sum(Operand x, RunningSumOptions options) {
  return apply(std::make_shared<RunningSum>(options), {x});
}

// Compares the gradients and second derivatives of the op with differences.
bool gradients_are_right(Backend& backend) {
  const Tensor x = Tensor::of<double>({2, 3}, {1, -2, 0.5, 3, 0.25, -1});
  const auto build = [](Graph&, std::span<const Node> in) {
    return std::vector{running_sum(in[0]), running_sum(square(in[0]), {.from_end = true})};
  };
  const GradientReport report = check_gradients(build, {x}, backend);
  if (!report.passed) std::fputs(to_string(report).c_str(), stderr);
  return report.passed;
}

// Returns walks whose steps were scaled by 2 and shifted by -1 before they were added up.
std::shared_ptr<const SampleSource> walks() {
  constexpr std::int64_t count = 32;
  constexpr std::int64_t length = 5;
  Tensor steps(TensorType{DType::float64, {count, length}});
  Tensor places(steps.type());
  for (std::int64_t i = 0; i < count * length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    steps.as<double>()[at] = std::sin(static_cast<double>(i));
    const double before = i % length == 0 ? 0 : places.as<double>()[at - 1];
    places.as<double>()[at] = before + 2 * steps.as<double>()[at] - 1;
  }
  return tensor_dataset({{"steps", steps}, {"places", places}});
}

int train(Communicator& ranks) {
  const auto backend = open_backend("cpu");
  if (!gradients_are_right(*backend)) return 1;
  const auto zero = [](const char* name) {
    return ParameterSpec{name, {DType::float64, {}}, ParameterRole::trainable, Initialiser::zeros()};
  };
  ParameterStore store({zero("scale"), zero("shift")});
  const auto build = [](const ModelInputs& inputs) -> LossOutputs {
    const auto number = [&](const char* name) {
      return inputs.graph().parameter(name, {DType::float64, {}});
    };
    const Node places = running_sum(number("scale") * inputs["steps"] + number("shift"));
    return {squared_error(places, inputs["places"])};
  };
  const auto strategy = make_strategy({}, ranks);
  Trainer trainer({.model = build,
                   .store = store,
                   .backend = *backend,
                   .train = walks(),
                   .collective = &ranks,
                   .strategy = strategy.get()},
                  {.batch_size = 16, .epochs = 100, .learning_rate = 0.01});
  check_agreement(ranks, trainer.facts());
  TrainingObserver quiet;
  trainer.run(quiet);
  const double scale = store.read("scale").to_doubles()[0];
  const double shift = store.read("shift").to_doubles()[0];
  if (ranks.rank() == 0) std::printf("scale %.3f, shift %.3f\n", scale, shift);
  return std::abs(scale - 2) < 0.01 && std::abs(shift + 1) < 0.01 ? 0 : 1;
}

int main() { return run_ranks({}, train); }
