// Activation functions.

#include "onnx/export/export_table.h"

namespace plexaura::onnx {

namespace {

using Names = std::vector<std::string>;

// x / 2 (1 + erf(x / sqrt(2))).
Names exported_gelu(ExportCall& call, const ExportRow&) {
  const std::string inner = call.add("Erf", {call.add("Mul", {call[0], call.number(0.70710678118654752)})});
  const std::string half = call.add("Mul", {call[0], call.number(0.5)});
  return {call.add("Mul", {half, call.add("Add", {inner, call.number(1)})})};
}

// x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
Names exported_gelu_tanh(ExportCall& call, const ExportRow&) {
  const std::string cube = call.add("Mul", {call.add("Mul", {call[0], call[0]}), call[0]});
  const std::string sum = call.add("Add", {call[0], call.add("Mul", {cube, call.number(0.044715)})});
  const std::string inner = call.add("Tanh", {call.add("Mul", {sum, call.number(0.79788456080286536)})});
  const std::string half = call.add("Mul", {call[0], call.number(0.5)});
  return {call.add("Mul", {half, call.add("Add", {inner, call.number(1)})})};
}

Names exported_clip(ExportCall& call, const ExportRow&) {
  return {call.add("Clip", {call[0], call.number(call.real("low")), call.number(call.real("high"))})};
}

// The slope must broadcast to x, so x is repeated first where the slope has more elements.
Names exported_prelu(ExportCall& call, const ExportRow&) {
  const bool is_repeated = call.input_type(0).shape != call.type().shape;
  const std::string x = is_repeated ? call.add("Expand", {call[0], call.shape(call.type().shape)}) : call[0];
  return {call.add("PRelu", {x, call[1]})};
}

Names exported_log_sigmoid(ExportCall& call, const ExportRow&) {
  return {call.add("Neg", {call.add("Softplus", {call.add("Neg", {call[0]})})})};
}

// x where x > 0, else alpha (e^(rate x) - 1).
Names exported_elu(ExportCall& call, const ExportRow&) {
  const double alpha = call.real("alpha");
  const double rate = call.real("rate");
  if (rate == 1) return {call.add("Elu", {call[0]}, {{"alpha", static_cast<float>(alpha)}})};
  const std::string power = call.add("Exp", {call.add("Mul", {call[0], call.number(rate)})});
  const std::string negative =
      call.add("Mul", {call.add("Sub", {power, call.number(1)}), call.number(alpha)});
  const std::string is_positive =
      call.add("Greater", {call[0], call.number(0)}, {DType::boolean, call.type().shape});
  return {call.add("Where", {is_positive, call[0], negative})};
}

Names exported_selu(ExportCall& call, const ExportRow&) {
  return {call.add("Selu", {call[0]}, {{"alpha", 1.6732632423543772F}, {"gamma", 1.0507009873554805F}})};
}

Names exported_silu(ExportCall& call, const ExportRow&) {
  return {call.add("Mul", {call[0], call.add("Sigmoid", {call[0]})})};
}

Names exported_hard_sigmoid(ExportCall& call, const ExportRow&) {
  return {call.add("HardSigmoid", {call[0]}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}})};
}

constexpr ExportRow activation_export[] = {
    {"clip", exported_clip, "Clip"},
    {"elu", exported_elu, "Elu"},
    {"gelu", exported_gelu},
    {"gelu_tanh", exported_gelu_tanh},
    {"hard_sigmoid", exported_hard_sigmoid, "HardSigmoid"},
    {"hard_swish", export_same, "HardSwish"},
    {"hard_tanh", exported_clip, "Clip"},
    {"leaky_relu", export_same, "LeakyRelu", {{{"slope", "alpha"}}}},
    {"log_sigmoid", exported_log_sigmoid},
    {"mish", export_same, "Mish"},
    {"prelu", exported_prelu, "PRelu"},
    {"relu", export_same, "Relu"},
    {"selu", exported_selu, "Selu"},
    {"sigmoid", export_same, "Sigmoid"},
    {"silu", exported_silu},
    {"softplus", export_same, "Softplus"},
    {"softsign", export_same, "Softsign"},
    {"tanh", export_same, "Tanh"},
};

}  // namespace

std::span<const ExportRow> exported_activations() { return activation_export; }

}  // namespace plexaura::onnx
