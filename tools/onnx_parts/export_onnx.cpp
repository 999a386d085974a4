#include <filesystem>
#include <fmt/format.h>

#include "onnx/exporter.h"
#include "onnx/format/proto.h"
#include "onnx/open_batch.h"
#include "tools/onnx_parts/commands.h"

#include "core/base/error.h"
#include "core/base/print.h"
#include "training/checkpoints/checkpoint_directory.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

std::filesystem::path weights_of(const OnnxExport& command, const DescribedModel& described) {
  if (!command.weights.empty()) return command.weights;
  if (const auto newest = newest_checkpoint(described.output)) return *newest / "weights.safetensors";
  throw UserError(
      fmt::format("{}: there are no weights to export; name a file with --weights, or in output.dir a folder "
                  "with a checkpoint, or export initial values with --untrained",
                  command.model.file));
}

// Settings of other sections are not compared, because the file contains only the model.
void load_checked(const std::filesystem::path& file, const DescribedModel& described, ParameterStore& store) {
  Metadata metadata = load_all_weights(file, store);
  std::erase_if(metadata, [](const auto& note) {
    return note.first.starts_with("setting.") && !note.first.starts_with("setting.model.");
  });
  check_settings(file, metadata, described.settings, "give the same");
}

std::string exported(const DescribedModel& described, const ParameterStore& store, std::int64_t samples) {
  Graph graph(Mode::inference);
  const Node input = graph.input("samples", {described.sample_dtype(store), described.batch(samples)});
  const Node outputs = (*described.model)(input);
  return onnx::export_graph(std::vector<onnx::ExportedOutput>{{"outputs", outputs}}, store);
}

// Returns the name and the type of a value: "samples float32[N,4]".
std::string text_of(const onnx::ValueProto& value) {
  std::string extents;
  for (const std::int64_t extent : value.extents)
    extents += (extents.empty() ? "" : ",") + (extent < 0 ? std::string("N") : std::to_string(extent));
  return fmt::format("{} {}[{}]", value.name, name_of(onnx::dtype_of(value.type)), extents);
}

std::string interface_of(const std::string& bytes) {
  const onnx::GraphProto graph = onnx::parse_model(bytes).graph;
  return text_of(graph.inputs.at(0)) + " -> " + text_of(graph.outputs.at(0));
}

}  // namespace

void export_onnx(const OnnxExport& command) {
  if (command.untrained && !command.weights.empty())
    throw UserError("--untrained exports initial values, and --weights names others; give one of them");
  const DescribedModel described = read_model(command.model);
  ParameterStore store = make_store(*described.model, DType::float32);
  if (!command.untrained) load_checked(weights_of(command, described), described, store);
  const std::string bytes = command.open_batch ? onnx::with_open_batch(exported(described, store, 7907),
                                                                       exported(described, store, 7919))
                                               : exported(described, store, command.batch);
  AtomicFile file(command.file);
  file.write(bytes);
  file.commit();
  print_output(fmt::format("{}: {}\n", command.file, interface_of(bytes)));
}

}  // namespace plexaura
