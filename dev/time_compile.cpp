// Times compile() over the number of nodes of two graphs with their gradients: a long one and a deep one.

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <sys/resource.h>
#include <vector>

#include "plexaura/core.h"
#include "tools/tool.h"

#include "backends/registry.h"
#include "core/autodiff/gradients.h"
#include "core/base/print.h"
#include "core/compile/compile.h"
#include "core/graph/graph.h"

namespace plexaura {

namespace {

constexpr std::int64_t batch = 64;
constexpr std::int64_t width = 32;

struct Options {
  std::vector<std::int64_t> nodes{1'000, 3'000, 10'000, 30'000};
  std::string backend = "cpu";
  double memory = 1;  // the limit of the arena, relative to the arena without one; 1: no limit
};

double seconds_of_processor() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

// Adds the loss of an LSTM over `steps` steps, and its gradients.
std::vector<ProgramOutput> unrolled(Graph& graph, std::int64_t steps) {
  const auto parameter = [&](const char* name, Shape shape) {
    return graph.parameter(name, {DType::float32, std::move(shape)});
  };
  const Node x = graph.input("x", {DType::float32, {batch, steps}});
  const Node input = parameter("input", {1, 4 * width});
  const Node recurrent = parameter("recurrent", {width, 4 * width});
  const Node input_bias = parameter("input_bias", {4 * width});
  const Node recurrent_bias = parameter("recurrent_bias", {4 * width});
  Node h = graph.constant(Tensor({DType::float32, {batch, width}}));
  Node c = h;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Node now = slice(x, {.axis = 1, .start = step, .stop = step + 1});
    const Node gates = (matmul(now, input) + input_bias) + (matmul(h, recurrent) + recurrent_bias);
    const auto gate = [&](std::int64_t which) {
      return slice(gates, {.axis = 1, .start = which * width, .stop = (which + 1) * width});
    };
    c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * tanh(gate(2));
    h = sigmoid(gate(3)) * tanh(c);
  }
  const Node loss = mean(h * h);
  std::vector<ProgramOutput> outputs{{.node = loss}};
  const std::vector<Node> parameters{input, input_bias, recurrent, recurrent_bias};
  for (const Node& gradient : gradients(loss, parameters)) outputs.push_back({.node = gradient});
  return outputs;
}

// Adds the loss of a perceptron of many layers, each with a running mean, and its gradients.
std::vector<ProgramOutput> deep(Graph& graph, std::int64_t layers) {
  Node h = graph.input("x", {DType::float32, {batch, width}});
  std::vector<Node> parameters;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto parameter = [&](const char* name, Shape shape) {
      parameters.push_back(
          graph.parameter(fmt::format("{}.{}", layer, name), {DType::float32, std::move(shape)}));
      return parameters.back();
    };
    const Node weight = parameter("weight", {width, width});
    const Node bias = parameter("bias", {width});
    h = relu(matmul(h, weight) + bias);
    const Node mean_of_batch = graph.buffer(fmt::format("{}.mean", layer), {DType::float32, {width}});
    graph.update(mean_of_batch, mean_of_batch * 0.9 + mean(h, {.axes = {0}}) * 0.1);
  }
  const Node loss = mean(h * h);
  std::vector<ProgramOutput> outputs{{.node = loss}};
  const std::vector<Node> by = gradients(loss, parameters);
  for (std::size_t i = 0; i < by.size(); ++i)
    outputs.push_back(
        {.node = by[i], .gradient_of = fmt::format("{}.{}", i / 2, i % 2 == 0 ? "weight" : "bias")});
  return outputs;
}

using Build = std::vector<ProgramOutput> (*)(Graph&, std::int64_t);

void time_compile(const Options& options, const char* title, Build build) {
  const auto backend = open_backend(options.backend);
  print_output(fmt::format("{}\n\n", title));
  print_output("| nodes | seconds of processor | microseconds for each node |\n|---|---|---|\n");
  for (const std::int64_t wanted : options.nodes) {
    Graph small;
    build(small, 20);
    const std::int64_t size =
        std::max<std::int64_t>(1, wanted * 20 / static_cast<std::int64_t>(small.size()));
    Graph graph;
    const std::vector<ProgramOutput> outputs = build(graph, size);
    CompileOptions limited;
    if (options.memory < 1)
      limited.memory_limit = static_cast<std::size_t>(
          options.memory * static_cast<double>(compile(graph, outputs, *backend)->arena_bytes));
    const double start = seconds_of_processor();
    compile(graph, outputs, *backend, limited);
    const double seconds = seconds_of_processor() - start;
    print_output(fmt::format("| {} | {:.3f} | {:.1f} |\n", graph.size(), seconds,
                             seconds * 1e6 / static_cast<double>(graph.size())));
  }
}

}  // namespace
}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  Options options;
  CLI::App app(
      "Times compile() over the number of nodes, for the gradients of an LSTM over many steps and of a "
      "perceptron of many layers",
      "time_compile");
  app.add_option("--nodes", options.nodes, "about how many nodes")->delimiter(',')->check(whole_number(100));
  app.add_option("--backend", options.backend, "cpu, portable or a plugin");
  app.add_option("--memory", options.memory,
                 "the limit of the arena, as a share of the arena without a limit");
  return run_tool(app, argc, argv, [&] {
    time_compile(options, "an LSTM over many steps", unrolled);
    time_compile(options, "a perceptron of many layers", deep);
  });
}
