#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "onnx/runner.h"
#include "onnx/stored_data.h"
#include "tools/onnx_parts/commands.h"
#include "tools/onnx_parts/npy.h"
#include "tools/tool.h"

#include "backends/registry.h"
#include "core/base/error.h"
#include "core/base/print.h"
#include "testing/values.h"

namespace plexaura {

namespace {

constexpr std::size_t printed_elements = 8;

std::string elements_text(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), printed_elements); ++i)
    text += fmt::format(" {:.6g}", values[i]);
  return values.size() > printed_elements ? text + " ..." : text;
}

Tensor read_array(const std::filesystem::path& path) {
  if (path.extension() == ".npy") return read_npy(path);
  if (path.extension() == ".pb") return onnx::read_stored_tensor(path);
  throw UserError(
      fmt::format("{}: its name must end in .npy (numpy) or .pb (a tensor of ONNX)", path.string()));
}

std::map<std::string, Tensor> read_inputs(const std::vector<std::string>& given) {
  std::map<std::string, Tensor> inputs;
  for (const std::string& input : given) {
    const std::size_t end = input.find('=');
    if (end == std::string::npos || end == 0)
      throw UserError(fmt::format("--input: '{}' must be NAME=FILE, such as samples=samples.npy", input));
    if (!inputs.emplace(input.substr(0, end), read_array(input.substr(end + 1))).second)
      throw UserError(fmt::format("--input: '{}' is given twice; give it once", input.substr(0, end)));
  }
  return inputs;
}

// Numbers from -1 to 1. Integers and bools are 0 or 1.
Tensor random_input(const onnx::InputFacts& input, const OnnxRun& command, testing::Random& random) {
  if (!input.has_shape)
    throw UserError(
        fmt::format("{}: it does not say the shape of the input '{}', so no random value can be made; give "
                    "a value with --input {}=FILE.npy",
                    command.file, input.name, input.name));
  std::vector<std::int64_t> extents = input.extents;
  for (std::int64_t& extent : extents)
    if (extent < 0) extent = command.open;
  const TensorType type{input.dtype, Shape(extents)};
  if (is_floating(input.dtype)) return random.tensor({DType::float64, type.shape}, -1, 1).cast(input.dtype);
  return testing::make({DType::float64, type.shape}, testing::whole(0, 2), random).cast(input.dtype);
}

// Checks the extents that the file fixes; it leaves negative ones open.
void check_extents(const onnx::InputFacts& input, const Shape& given) {
  if (!input.has_shape) return;
  bool fits = given.rank() == std::ssize(input.extents);
  std::vector<std::string> declared;
  for (std::size_t axis = 0; axis < input.extents.size(); ++axis) {
    const std::int64_t extent = input.extents[axis];
    fits = fits && (extent < 0 || given[static_cast<std::int64_t>(axis)] == extent);
    declared.push_back(extent < 0 ? "?" : std::to_string(extent));
  }
  if (!fits)
    throw UserError(
        fmt::format("--input: the input {} must be [{}] and is {}; give that shape, or export with "
                    "--open-batch for other "
                    "batches",
                    printable(input.name), fmt::join(declared, ","), to_string(given)));
}

std::string file_name(std::string name) {
  std::ranges::replace(name, '/', '_');
  return name + ".npy";
}

}  // namespace

void run_onnx(const OnnxRun& command) {
  onnx::FileModel model(std::filesystem::path(command.file));
  std::map<std::string, Tensor> inputs = read_inputs(command.inputs);
  testing::Random random(static_cast<std::uint64_t>(command.seed));
  std::string text;
  for (const onnx::InputFacts& input : model.inputs()) {
    const bool is_given = inputs.contains(input.name);
    if (is_given) check_extents(input, inputs[input.name].shape());
    if (!is_given) inputs[input.name] = random_input(input, command, random);
    text += fmt::format("input {} {}: {}\n", printable(input.name), to_string(inputs[input.name].type()),
                        is_given ? "given" : fmt::format("random, seed {}", command.seed));
  }
  ParameterStore store = model.make_store();
  const auto backend = open_backend(command.backend);
  const std::vector<Tensor> outputs = onnx::Runner(model, store, *backend)(inputs);
  const std::vector<std::string> names = model.outputs();
  if (!command.save.empty()) make_folder(command.save);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    text += fmt::format("output {} {}:{}\n", printable(names[i]), to_string(outputs[i].type()),
                        elements_text(outputs[i]));
    if (!command.save.empty())
      write_npy(std::filesystem::path(command.save) / file_name(names[i]), outputs[i]);
  }
  print_output(text);
}

}  // namespace plexaura
