// The graph by itself, without modules and trainer: a straight line through points, by gradient descent.

#include <cstdio>

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/vm/compile.h"
#include "core/vm/vm.h"

using namespace plexaura;

int main() try {
  constexpr DType real = DType::float64;
  const Tensor xs = Tensor::of<double>({5}, {-2, -1, 0, 1, 2});
  const Tensor ys = Tensor::of<double>({5}, {-5.1, -2.9, -1.0, 0.9, 3.1});  // about 2 x - 1

  // The graph says what is computed: the loss, and its gradients, which are graph too.
  Graph graph;
  const Node x = graph.input("x", {real, {5}});
  const Node y = graph.input("y", {real, {5}});
  const Node slope = graph.parameter("slope", {real, {}});
  const Node offset = graph.parameter("offset", {real, {}});
  const Node loss = mean(square(slope * x + offset - y));
  const std::vector<Node> grad = gradients(loss, {slope, offset});

  // The store owns the values; the program is the graph compiled for a device; the VM runs it as often as one
  // likes.
  const auto zero = [](const char* name) {
    return ParameterSpec{name, {real, {}}, ParameterRole::trainable, Initialiser::zeros(), {}};
  };
  ParameterStore store({zero("slope"), zero("offset")});
  const auto backend = open_backend("cpu");
  const std::vector<ProgramOutput> outputs{{.node = loss}, {.node = grad[0]}, {.node = grad[1]}};
  const auto program = compile(graph, outputs, *backend);
  store.place(program->placement, *backend);
  VM vm(program, *backend, {.store = &store});

  const auto descend = [&](const char* name, std::size_t output) {
    const double value = store.read(name).to_doubles()[0] - 0.1 * vm.output(output).to_doubles()[0];
    store.write(name, Tensor::scalar(value));
    return value;
  };
  double a = 0;
  double b = 0;
  for (int step = 0; step < 100; ++step) {
    vm.run({{"x", xs}, {"y", ys}});
    a = descend("slope", 1);
    b = descend("offset", 2);
  }
  std::printf("y = %.3f x %+.3f, mean squared error %.5f\n", a, b, vm.output(0).to_doubles()[0]);
  return a > 2 && a < 2.1 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
