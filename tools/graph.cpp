// Shows the graph of a model from its YAML file: as text, for graphviz, as a picture, or as the program that
// it compiles to.

#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <vector>

#include "tools/described_model.h"
#include "tools/tool.h"

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "core/graph/print.h"
#include "core/step/training_step.h"
#include "models/zoo/model.h"

namespace plexaura {

namespace {

struct Options {
  ModelSource model;
  std::string format = "text";
  std::string mode = "inference";
  std::int64_t batch = 1;
  std::string backend = "cpu";
};

void declare(CLI::App& app, Options& options) {
  declare(app, options.model);
  app.add_option("--format", options.format,
                 "text, dot (for graphviz), svg (needs graphviz) or program (compiled)")
      ->check(CLI::IsMember({"text", "dot", "svg", "program"}))
      ->capture_default_str();
  app.add_option("--mode", options.mode,
                 "inference: outputs; loss: outputs in training mode and the loss; training: also gradients")
      ->check(CLI::IsMember({"inference", "loss", "training"}))
      ->capture_default_str();
  app.add_option("--batch", options.batch, "number of samples")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--backend", options.backend, "backend for --format program")->capture_default_str();
}

// Adds to the graph what the mode needs, and returns the outputs of its program.
std::vector<ProgramOutput> build(Graph& graph, const DescribedModel& of, const ParameterStore& store,
                                 const Options& options) {
  Model& model = *of.model;
  const Node outputs = model(graph.input("samples", {of.sample_dtype(store), of.batch(options.batch)}));
  if (options.mode == "inference") return {{.node = outputs}};
  const Field expected = expected_field(model);
  const DType dtype = is_floating(expected.type.dtype) ? store.dtype() : expected.type.dtype;
  const Node labels = graph.input(expected.name, {dtype, batched(options.batch, expected.type.shape)});
  const LossOutputs loss = build_loss(model, outputs, labels);
  if (options.mode == "loss") return {{.node = loss.loss}};
  return training_outputs(graph, loss, store, options.batch);
}

// Writes `dot` as a picture to standard output, by running graphviz.
void draw(const std::string& dot) {
  std::fflush(stdout);
  FILE* pipe = popen("dot -Tsvg", "w");  // NOLINT(cert-env33-c): the command is fixed
  if (pipe == nullptr) throw DeviceError("no process can be started");
  std::fputs(dot.c_str(), pipe);
  if (pclose(pipe) != 0)
    throw UserError("graphviz could not draw it; is it installed (tools/install_packages pictures)?");
}

void show(const Options& options) {
  const DescribedModel described = read_model(options.model);
  const ParameterStore store = make_store(*described.model, DType::float32);
  Graph graph(options.mode == "inference" ? Mode::inference : Mode::train);
  const std::vector<ProgramOutput> outputs = build(graph, described, store, options);
  if (options.format == "text") {
    print_output(to_text(graph));
  } else if (options.format == "dot") {
    print_output(to_dot(graph));
  } else if (options.format == "svg") {
    draw(to_dot(graph));
  } else {
    const auto backend = open_backend(options.backend);
    print_output(compile(graph, outputs, *backend, {.apply_updates = false})->to_text());
  }
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Shows the graph of a model from its YAML file", "graph");
  Options options;
  declare(app, options);
  return run_tool(app, argc, argv, [&] { show(options); });
}
