#include <filesystem>
#include <fmt/format.h>

#include "onnx/exporter.h"
#include "onnx/format/proto.h"
#include "onnx/open_batch.h"
#include "tools/onnx_parts/commands.h"

#include "core/base/error.h"
#include "core/base/print.h"
#include "training/checkpoints/checkpoint_directory.h"

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

std::string exported(const DescribedModel& described, const ParameterStore& store, std::int64_t samples,
                     const onnx::ExternalFile& external) {
  Graph graph(Mode::inference);
  const Node input = graph.input("samples", {described.sample_dtype(store), described.batch(samples)});
  const Node outputs = (*described.model)(input);
  return onnx::export_graph(std::vector<onnx::ExportedOutput>{{"outputs", outputs}}, store, &external);
}

// Makes the file from two exports. The first one writes the weights.
std::string exported_with_open_batch(const DescribedModel& described, const ParameterStore& store,
                                     const onnx::ExternalFile& external) {
  const std::string one = exported(described, store, 7907, external);
  const onnx::ExternalFile unwritten{external.location, nullptr, external.is_always_used};
  return onnx::with_open_batch(one, exported(described, store, 7919, unwritten));
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
  std::string interface;
  onnx::write_model_to(
      command.file, command.external ? onnx::WeightsPlace::beside : onnx::WeightsPlace::inside_if_small,
      [&](const onnx::ExternalFile& external) {
        std::string bytes = command.open_batch ? exported_with_open_batch(described, store, external)
                                               : exported(described, store, command.batch, external);
        interface = interface_of(bytes);
        return bytes;
      });
  print_output(fmt::format("{}: {}\n", command.file, interface));
}

}  // namespace plexaura
