#include "tools/graph_parts/shown_graph.h"

#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "onnx/model.h"

#include "core/base/error.h"
#include "core/step/training_step.h"
#include "models/zoo/model.h"

namespace plexaura {

namespace {

bool is_onnx(const std::string& file) { return std::filesystem::path(file).extension() == ".onnx"; }

void check_arguments_of_onnx(const GraphSource& source) {
  const auto refuse = [](bool is_given, const char* option, const char* reason) {
    if (is_given) throw UserError(fmt::format("{}: {}; leave it out", option, reason));
  };
  refuse(source.mode != "inference", "--mode", "an ONNX file describes no loss");
  refuse(!source.model.set.empty(), "--set", "an ONNX file has no keys");
  refuse(!source.model.sample.empty(), "--sample", "an ONNX file describes its inputs itself");
  refuse(source.model.classes != 0, "--classes", "an ONNX file describes its outputs itself");
}

ShownGraph build_onnx(const GraphSource& source) {
  check_arguments_of_onnx(source);
  onnx::FileModel model(std::filesystem::path(source.model.file));
  model.make_store();  // names the parameters
  ShownGraph shown{std::make_unique<Graph>(Mode::inference), {}};
  std::map<std::string, Node, std::less<>> inputs;
  for (const onnx::InputFacts& input : model.inputs()) {
    if (!input.has_shape)
      throw UserError(
          fmt::format("{}: it does not say the shape of the input '{}', for which the graph would be built; "
                      "export it with shapes",
                      source.model.file, input.name));
    std::vector<std::int64_t> extents = input.extents;
    for (std::int64_t& extent : extents)
      if (extent < 0) extent = source.batch;
    inputs[input.name] = shown.graph->input(input.name, {input.dtype, Shape(extents)});
  }
  for (const Node& output : model(*shown.graph, inputs)) shown.outputs.push_back({.node = output});
  return shown;
}

ShownGraph build_described(const GraphSource& source) {
  const DescribedModel described = read_model(source.model);
  Model& model = *described.model;
  const ParameterStore store = make_store(model, DType::float32);
  const bool is_inference = source.mode == "inference";
  ShownGraph shown{std::make_unique<Graph>(is_inference ? Mode::inference : Mode::train), {}};
  Graph& graph = *shown.graph;
  const Node samples = graph.input("samples", {described.sample_dtype(store), described.batch(source.batch)});
  const Node outputs = model(samples);
  if (is_inference) {
    shown.outputs = {{.node = outputs}};
    return shown;
  }
  const Field expected = expected_field(model);
  const DType dtype = is_floating(expected.type.dtype) ? store.dtype() : expected.type.dtype;
  const Node labels = expected.name == "samples"
                          ? samples
                          : graph.input(expected.name, {dtype, batched(source.batch, expected.type.shape)});
  const LossOutputs loss = build_loss(model, outputs, labels);
  if (source.mode == "loss")
    shown.outputs = {{.node = loss.loss}};
  else
    shown.outputs = training_outputs(graph, loss, store, source.batch);
  return shown;
}

}  // namespace

ShownGraph build_graph(const GraphSource& source) {
  return is_onnx(source.model.file) ? build_onnx(source) : build_described(source);
}

}  // namespace plexaura
