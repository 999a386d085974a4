// Shows the graph of a model from its YAML file or of an ONNX file: as text, for graphviz, as a picture, as the
// program that it compiles to, or as a page of HTML with all passes.

#include <cstdio>
#include <fmt/format.h>
#include <string>

#include "tools/graph_parts/graph_page.h"
#include "tools/graph_parts/shown_graph.h"
#include "tools/tool.h"

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "core/compile/compile.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

struct Options {
  GraphSource source;
  std::string format = "text";
  std::string backend = "cpu";
};

void declare(CLI::App& app, Options& options) {
  declare(app, options.source.model);
  app.add_option(
         "--format", options.format,
         "text, dot (for graphviz), svg (needs graphviz), program (compiled) or html (a page with the "
         "graph before and after each pass, and the memory plan)")
      ->check(CLI::IsMember({"text", "dot", "svg", "program", "html"}))
      ->capture_default_str();
  app.add_option("--mode", options.source.mode,
                 "inference: outputs; loss: outputs in training mode and the loss; training: also gradients")
      ->check(CLI::IsMember({"inference", "loss", "training"}))
      ->capture_default_str();
  app.add_option("--batch", options.source.batch,
                 "number of samples; in an ONNX file, each extent that the file leaves open")
      ->check(whole_number(1))
      ->capture_default_str();
  app.add_option("--backend", options.backend, "backend for --format program and html")
      ->capture_default_str();
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

std::string title_of(const Options& options) {
  return fmt::format("{}, {}, batch {}", options.source.model.file, options.source.mode,
                     options.source.batch);
}

void show(const Options& options) {
  const ShownGraph shown = build_graph(options.source);
  if (options.format == "text") return print_output(to_text(*shown.graph));
  if (options.format == "dot") return print_output(to_dot(*shown.graph));
  if (options.format == "svg") return draw(to_dot(*shown.graph));
  const auto backend = open_backend(options.backend);
  if (options.format == "html") return print_output(graph_page(shown, *backend, title_of(options)));
  print_output(compile(*shown.graph, shown.outputs, *backend, {.apply_updates = false})->to_text());
}

}  // namespace

}  // namespace plexaura

int main(int argc, char** argv) {
  using namespace plexaura;
  CLI::App app("Shows the graph of a model from its YAML file or of an ONNX file", "graph");
  Options options;
  declare(app, options);
  return run_tool(app, argc, argv, [&] { show(options); });
}
