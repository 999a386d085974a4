// Computes the gradient of the program's own op, with only the engine.

#include <plexaura/core.h>

using namespace plexaura;

namespace {

struct PowerOptions {
  std::int64_t exponent = 2;

  static void fields(auto& self, auto& visitor) { visitor("exponent", self.exponent); }
};

// x^exponent, in float64.
struct Power final : OpOf<Power, PowerOptions> {
  using OpOf::OpOf;
  std::string_view name() const override { return "power_of_use_core"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const {
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
      double product = 1;
      for (std::int64_t n = 0; n < options().exponent; ++n) product *= call.inputs[0].as<double>()[i];
      call.outputs[0].as<double>()[i] = product;
    }
  }
};

Node power(Operand x, std::int64_t exponent) {
  return apply(std::make_shared<Power>(PowerOptions{exponent}), {x});
}

std::vector<Node> Power::vjp(const VjpRequest& request) const {
  const auto n = options().exponent;
  return {request.grad_outputs[0] * static_cast<double>(n) * power(request.inputs[0], n - 1)};
}

}  // namespace

int main() try {
  const auto backend = open_backend("cpu");
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3}});
  Function slope(graph, {x}, {gradients(sum(power(x, 3)), {x})[0]}, *backend);
  const Tensor found = slope(Tensor::of<double>({3}, {1, -2, 0.5}))[0];
  return found == Tensor::of<double>({3}, {3, 12, 0.75}) ? 0 : 1;
} catch (const Error& error) {
  return error.exit_status();
}
