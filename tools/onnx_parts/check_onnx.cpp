#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>

#include "onnx/format/inline_functions.h"
#include "onnx/format/proto.h"
#include "onnx/runner.h"
#include "onnx/stored_data.h"
#include "tools/onnx_parts/commands.h"

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "training/files/file.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

fs::path model_in(const fs::path& path) {
  if (!fs::is_directory(path)) return path;
  std::vector<fs::path> files;
  for (const fs::path& entry : sorted_entries(path))
    if (entry.extension() == ".onnx") files.push_back(entry);
  if (files.size() != 1)
    throw UserError(fmt::format(
        "{}: it has {} files whose names end in .onnx; a folder to check has one, or name the file",
        path.string(), files.size()));
  return files[0];
}

void count_ops(const onnx::GraphProto& graph, std::map<std::string, int>& counts) {
  for (const onnx::NodeProto& node : graph.nodes) {
    ++counts[node.domain.empty() ? node.op : node.domain + "." + node.op];
    for (const onnx::AttributeProto& attribute : node.attributes)
      if (attribute.graph) count_ops(*attribute.graph, counts);
  }
}

std::string ops_text(const fs::path& file) {
  const std::vector<std::uint8_t> bytes = InputFile(file).read_all();
  std::map<std::string, int> counts;
  try {
    onnx::ModelProto model = onnx::parse_model({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    onnx::inline_functions(model);
    count_ops(model.graph, counts);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", file.string(), error.what()));
  }
  std::string text;
  for (const auto& [op, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", printable(op), count);
  return text;
}

// Computes the outputs for a folder of test data. Returns the largest distance to the stored ones.
double compared(const onnx::FileModel& model, onnx::Runner& run, const fs::path& data) {
  const std::vector<Tensor> stored = onnx::read_stored_tensors(data, "input");
  const std::vector<onnx::InputFacts>& facts = model.inputs();
  if (stored.size() != facts.size())
    throw UserError(fmt::format("{}: it has {} inputs, but the model has {}", data.string(), stored.size(),
                                facts.size()));
  std::map<std::string, Tensor> inputs;
  for (std::size_t i = 0; i < stored.size(); ++i) inputs[facts[i].name] = stored[i];
  const std::vector<Tensor> outputs = run(inputs);
  const std::vector<Tensor> expected = onnx::read_stored_tensors(data, "output");
  if (outputs.size() != expected.size())
    throw UserError(fmt::format("{}: it has {} outputs, but the model has {}", data.string(), expected.size(),
                                outputs.size()));
  double largest = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string found = onnx::difference(outputs[i], expected[i]);
    if (!found.empty())
      throw Error(fmt::format("{}: output {} ('{}'): {}; the tolerance is 1e-3 of it", data.string(), i,
                              printable(model.outputs()[i]), found));
    largest = std::max(largest, onnx::largest_distance(outputs[i], expected[i]));
  }
  return largest;
}

}  // namespace

void check_onnx(const OnnxCheck& command) {
  const fs::path file = model_in(command.path);
  print_output(fmt::format("ops: {}\n", ops_text(file)));
  onnx::FileModel model(file);
  ParameterStore store = model.make_store();
  print_output("all of them are supported\n");
  if (!fs::is_directory(command.path)) return;
  const auto backend = open_backend(command.backend);
  onnx::Runner run(model, store, *backend);
  for (const fs::path& data : sorted_entries(command.path)) {
    if (!fs::is_directory(data) || !data.filename().string().starts_with("test_data_set")) continue;
    print_output(fmt::format("{}: the outputs are those that are stored; the largest difference is {:.2g}\n",
                             printable(data.filename().string()), compared(model, run, data)));
  }
}

}  // namespace plexaura
