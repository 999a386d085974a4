// A gradient, with the engine alone.

#include <plexaura/core.h>

using namespace plexaura;

int main() try {
  const auto backend = open_backend("cpu");
  Graph graph;
  const Node x = graph.input("x", {DType::float64, {3}});
  const std::vector<ProgramOutput> outputs{{.node = gradients(sum(square(x)), {x})[0]}};
  VM vm(compile(graph, outputs, *backend), *backend);
  vm.run({{"x", Tensor::of<double>({3}, {1, -2, 0.5})}});
  return vm.output() == Tensor::of<double>({3}, {2, -4, 1}) ? 0 : 1;
} catch (const Error& error) {
  return error.exit_status();
}
