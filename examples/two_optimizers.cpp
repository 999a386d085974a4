// Trains two nets against each other on one store: a critic learns how generated numbers differ from real ones, and a
// generator learns to make numbers in which the critic finds no difference.

#include <cstdio>
#include <plexaura/plexaura.h>

using namespace plexaura;

namespace {

const TensorType scalar{DType::float64, {}};
const TensorType batch{DType::float64, {8}};

// Returns the critic's output: a weighted sum of the numbers' mean and mean square.
Node critic(Graph& graph, const Node& x) {
  return mean(graph.parameter("critic.first", scalar) * x +
              graph.parameter("critic.second", scalar) * square(x));
}

Node generator(Graph& graph) {
  const Node noise = graph.input("noise", batch);
  return graph.parameter("generator.scale", scalar) * noise + graph.parameter("generator.shift", scalar);
}

Node critic_loss(Graph& graph) {
  const Node size =
      square(graph.parameter("critic.first", scalar)) + square(graph.parameter("critic.second", scalar));
  return critic(graph, generator(graph)) - critic(graph, graph.input("real", batch)) + size * 0.5;
}

Node generator_loss(Graph& graph) { return critic(graph, generator(graph)) * -1; }

ParameterSpec starts_with(const char* name, const Initialiser& initialiser) {
  return {name, scalar, ParameterRole::trainable, initialiser};
}

}  // namespace

int main() try {
  const Tensor noise = Tensor::of<double>({8}, {-1.5, -0.9, -0.5, -0.1, 0.1, 0.5, 0.9, 1.5});
  const Tensor real = Tensor::of<double>({8}, {0.25, 0.55, 0.75, 0.95, 1.05, 1.25, 1.45, 1.75});
  ParameterStore store({starts_with("critic.first", Initialiser::zeros()),
                        starts_with("critic.second", Initialiser::zeros()),
                        starts_with("generator.scale", Initialiser::ones()),
                        starts_with("generator.shift", Initialiser::zeros())});
  const auto backend = open_backend("cpu");

  // Each loss has a graph of its own. Each optimizer changes only the parameters that it names.
  Graph of_critic;
  Optimizer critic({.loss = critic_loss(of_critic)}, store, *backend,
                   {.parameters = {"critic.*"}, .learning_rate = 0.5});
  Graph of_generator;
  Optimizer generator(
      {.loss = generator_loss(of_generator)}, store, *backend,
      {.parameters = {"generator.*"}, .optimizer = {.kind = OptimizerSpec::adam}, .learning_rate = 0.02});
  for (int step = 0; step < 400; ++step) {
    for (int i = 0; i < 3; ++i) critic.step({{"noise", noise}, {"real", real}});
    generator.step({{"noise", noise}});
  }

  const double scale = store.read("generator.scale").to_doubles()[0];
  const double shift = store.read("generator.shift").to_doubles()[0];
  std::printf("the real numbers are 0.5 * noise + 1, the generated ones %.3f * noise + %.3f\n", scale, shift);
  return scale > 0.49 && scale < 0.51 && shift > 0.99 && shift < 1.01 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return error.exit_status();
}
