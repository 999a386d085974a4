#include <filesystem>
#include <fmt/format.h>

#include "onnx/exporter.h"
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
  require_weights_file(file);
  Metadata metadata = load_weights(file, store);
  std::erase_if(metadata, [](const auto& note) {
    return note.first.starts_with("setting.") && !note.first.starts_with("setting.model.");
  });
  check_settings(file, metadata, described.settings, "give the same");
}

}  // namespace

void export_onnx(const OnnxExport& command) {
  if (command.untrained && !command.weights.empty())
    throw UserError("--untrained exports initial values, and --weights names others; give one of them");
  const DescribedModel described = read_model(command.model);
  ParameterStore store = make_store(*described.model, DType::float32);
  if (!command.untrained) load_checked(weights_of(command, described), described, store);
  Graph graph(Mode::inference);
  const Node samples =
      graph.input("samples", {described.sample_dtype(store), described.batch(command.batch)});
  const Node outputs = (*described.model)(samples);
  onnx::export_to(command.file, std::vector<onnx::ExportedOutput>{{"outputs", outputs}}, store);
  print_output(fmt::format("{}: samples {} -> outputs {}\n", command.file, to_string(samples.type()),
                           to_string(outputs.type())));
}

}  // namespace plexaura
