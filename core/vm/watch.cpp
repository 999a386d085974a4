#include "core/vm/watch.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

bool all_finite(const Tensor& tensor) {
  return std::ranges::all_of(tensor.to_doubles(), [](double value) { return std::isfinite(value); });
}

// Compares bytes, so that large gradients are not converted. The highest bit of an element is its sign.
bool all_zero(const Tensor& tensor) {
  const std::size_t size = size_of(tensor.dtype());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    const std::byte magnitude = tensor.data()[i] & (i % size == size - 1 ? std::byte{0x7f} : std::byte{0xff});
    if (magnitude != std::byte{0}) return false;
  }
  return tensor.bytes() > 0;
}

std::string first_bad(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  const auto bad = std::ranges::find_if(values, [](double value) { return !std::isfinite(value); });
  return fmt::format("{} at element {}", std::isnan(*bad) ? "NaN" : "Inf", bad - values.begin());
}

namespace {

std::string range_text(const Tensor& tensor) {
  const std::vector<double> values = tensor.to_doubles();
  if (values.empty()) return "nothing";
  const auto [least, most] = std::ranges::minmax_element(values);
  return fmt::format("[{:.6g}, {:.6g}]", *least, *most);
}

// True if the kernel has worked in place and has overwritten this input.
bool overwritten(const Instruction& instruction, const Slot& input) {
  return std::ranges::any_of(instruction.outputs,
                             [&](const auto& output) { return output && output->place == input.place; });
}

// Returns the floating-point operations of an instruction's first node. A multiply-add counts as two. Returns 0 for
// all ops but convolutions and matmuls, because all others are limited by memory bandwidth.
double flops_of(const Program& program, const Instruction& instruction) {
  const NodeRecord& record = program.graph->record(instruction.nodes.front());
  const std::string_view op = record.op->name();
  const auto elements = [&](Value value) {
    return static_cast<double>(program.graph->type(value).shape.elements());
  };
  if (op == "matmul") {
    const Shape& a = program.graph->type(record.inputs[0]).shape;
    const double inner = static_cast<double>(a.elements()) *
                         static_cast<double>(program.graph->type(record.inputs[1]).shape.elements());
    return 2 * std::sqrt(inner * static_cast<double>(record.types[0].shape.elements()));
  }
  // Each weight is used once for each spatial position of the output, or of the output's gradient in the gradient ops.
  if (op == "conv2d" || op == "conv3d")
    return 2 * elements({instruction.nodes.front(), 0}) * elements(record.inputs[1]) /
           static_cast<double>(record.types[0].shape[1]);
  if (op == "conv2d_input_grad" || op == "conv3d_input_grad") {
    const Shape& weights = program.graph->type(record.inputs[0]).shape;
    return 2 * elements(record.inputs[1]) * static_cast<double>(weights.elements()) /
           static_cast<double>(weights[0]);
  }
  if (op == "conv2d_weight_grad" || op == "conv3d_weight_grad") {
    const Shape& weights = record.types[0].shape;
    return 2 * elements(record.inputs[1]) * static_cast<double>(weights.elements()) /
           static_cast<double>(weights[0]);
  }
  return 0;
}

double operand_bytes(const Instruction& instruction) {
  double bytes = 0;
  for (const auto& input : instruction.inputs)
    if (input) bytes += static_cast<double>(input->layout.bytes(input->type));
  for (const auto& output : instruction.outputs)
    if (output) bytes += static_cast<double>(output->layout.bytes(output->type));
  return bytes;
}

}  // namespace

void check_finite(const Instruction& instruction, const std::function<Tensor(const Slot&)>& read) {
  for (const auto& output : instruction.outputs) {
    if (!output || !is_floating(output->type.dtype)) continue;
    const Tensor tensor = read(*output);
    if (all_finite(tensor)) continue;
    std::string inputs;
    for (const auto& input : instruction.inputs)
      if (input && is_floating(input->type.dtype) && !overwritten(instruction, *input))
        inputs += fmt::format("; an input ranged over {}", range_text(read(*input)));
    throw UserError(
        fmt::format("{} produced {} in {}{}; lower the learning rate, or mend the data or the model that "
                    "give the op such inputs",
                    instruction.name, first_bad(tensor), to_string(output->type), inputs));
  }
}

std::string detail_of(const Program& program, const Instruction& instruction, double microseconds) {
  std::string shapes;
  for (const auto& input : instruction.inputs)
    if (input) shapes += (shapes.empty() ? "" : ", ") + to_string(input->type);
  const double seconds = std::max(microseconds, 1e-3) * 1e-6;
  std::string text = fmt::format("{} ({}) {:.1f} GB/s", instruction.implementation, shapes,
                                 operand_bytes(instruction) / seconds * 1e-9);
  if (const double flops = flops_of(program, instruction); flops > 0)
    text += fmt::format(" {:.1f} GFLOP/s", flops / seconds * 1e-9);
  return text;
}

}  // namespace plexaura
