// Shows the graph of a model from its YAML file: as text, for graphviz, as a picture, or as the program that
// it compiles to.

#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/tool.h"

#include "app/data/open_data.h"
#include "app/options/repeatable.h"
#include "app/options/run_config.h"
#include "backends/registry.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "core/graph/print.h"
#include "core/step/training_step.h"
#include "models/zoo/model.h"

namespace plexaura {

namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
  std::string format = "text";
  std::string mode = "inference";
  std::int64_t batch = 1;
  std::vector<std::int64_t> sample;
  std::int64_t classes = 0;
  std::string backend = "cpu";
};

void declare(CLI::App& app, Options& options) {
  app.add_option("FILE.yaml", options.file, "configuration of the model")->required();
  repeatable(app.add_option("--set", options.set, "overrides a key of the file: --set model.depth=18"))
      ->type_name("KEY=VALUE");
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
  app.add_option("--sample", options.sample,
                 "shape of a sample, such as 1,28,28; with --classes, no data is read")
      ->delimiter(',');
  app.add_option("--classes", options.classes, "number of classes")->check(whole_number(1));
  app.add_option("--backend", options.backend, "backend for --format program")->capture_default_str();
}

constexpr std::int64_t any_number = 1 << 20;  // number of samples that is assumed if no data is read

// Throws UserError for a key that is misspelt or has no effect, like the programs do. The file may also
// describe a model alone.
void check_keys(const Config& config, std::int64_t samples, bool has_read_data) {
  const bool trains = config.root().has("training");
  if (trains) read_options(config, samples, 1);
  if (has_read_data && trains) return config.check_all_used();
  config.root().check_keys({"model", "data", "training", "distributed", "output"});
  config.section("model").check_all_used();
  if (trains) config.section("training").check_all_used();
}

// A model and the dtype of its samples, which is empty if it is that of the parameters.
struct Described {
  std::unique_ptr<Model> model;
  std::optional<DType> samples = {};
};

Described read_model(const Options& options) {
  const Config config = Config::load(options.file, options.set);
  if (options.sample.empty() != (options.classes == 0))
    throw UserError("--sample and --classes need each other");
  if (!options.sample.empty()) {
    auto model = make_model(config, Shape(options.sample), options.classes);
    check_keys(config, any_number, false);
    return {std::move(model)};
  }
  const RunData data = open_data(config);
  auto model = make_model(config.section("model"), data.sample().shape, data.output_count(), data.pixels, {},
                          data.trained.class_weights);
  check_keys(config, data.train->size(), true);
  const DType samples = data.sample().dtype;
  return {std::move(model), is_floating(samples) ? std::nullopt : std::optional(samples)};
}

// Adds to the graph what the mode needs, and returns the outputs of its program.
std::vector<ProgramOutput> build(Graph& graph, const Described& of, const ParameterStore& store,
                                 const Options& options) {
  Model& model = *of.model;
  std::vector<std::int64_t> extents{options.batch};
  extents.insert(extents.end(), model.sample_shape().begin(), model.sample_shape().end());
  const Node outputs = model(graph.input("samples", {of.samples.value_or(store.dtype()), Shape(extents)}));
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
  const Described described = read_model(options);
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
