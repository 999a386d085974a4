// Uses the graph without modules and trainer: fits a straight line to points by gradient descent.

#include <cstdio>
#include <plexaura/plexaura.h>

using namespace plexaura;

int main() try {
  constexpr DType real = DType::float64;
  const Tensor xs = Tensor::of<double>({5}, {-2, -1, 0, 1, 2});
  const Tensor ys = Tensor::of<double>({5}, {-5.1, -2.9, -1.0, 0.9, 3.1});  // approximately 2 x - 1

  // The graph describes the computation: the prediction and its loss.
  Graph graph;
  const Node x = graph.input("x", {real, {5}});
  const Node y = graph.input("y", {real, {5}});
  const Node slope = graph.parameter("slope", {real, {}});
  const Node offset = graph.parameter("offset", {real, {}});
  const Node loss = mean(square(slope * x + offset - y));

  // The store owns the values of the parameters. The optimizer adds the gradients, which are nodes too, to
  // the graph, and compiles everything for a device.
  const auto zero = [](const char* name) {
    return ParameterSpec{name, {real, {}}, ParameterRole::trainable, Initialiser::zeros()};
  };
  ParameterStore store({zero("slope"), zero("offset")});
  const auto backend = open_backend("cpu");
  Optimizer optimizer({.loss = loss}, store, *backend, {.learning_rate = 0.1});
  double error = 0;
  for (int step = 0; step < 100; ++step) error = optimizer.step({{"x", xs}, {"y", ys}});

  const double a = store.read("slope").to_doubles()[0];
  const double b = store.read("offset").to_doubles()[0];
  std::printf("y = %.3f x %+.3f, mean squared error %.5f\n", a, b, error);
  return a > 2 && a < 2.1 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
