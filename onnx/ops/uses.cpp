#include "onnx/ops/uses.h"

#include <algorithm>
#include <set>

namespace plexaura::onnx {

namespace {

// How a node uses one of its inputs.
enum class InputRole {
  differentiable,  // the outputs have a gradient by the input
  without_gradient,
  type_only,  // the node reads the type or the shape, but no element
  early,      // the builder of the node reads the elements
  moment,     // a running moment of batch norm
};

using OpNames = std::set<std::string, std::less<>>;

bool reads_early(const std::string& op, std::size_t input) {
  static const OpNames all{"ConstantOfShape", "Range"};
  static const OpNames all_but_first{
      "Clip",      "CumSum",     "Dropout",      "Expand",          "Pad",
      "ReduceL1",  "ReduceL2",   "ReduceMax",    "ReduceMean",      "ReduceMin",
      "ReduceSum", "Reshape",    "Resize",       "Slice",           "Split",
      "Squeeze",   "Tile",       "TopK",         "Trilu",           "Unsqueeze",
      "Upsample",  "ReduceProd", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};
  static const OpNames second{"Adagrad", "Adam", "Compress", "Momentum", "OneHot"};
  return all.contains(op) || (input > 0 && all_but_first.contains(op)) ||
         (input == 1 && second.contains(op)) || (input == 2 && op == "MaxUnpool");
}

bool reads_type_only(const std::string& op, std::size_t input) {
  return op == "EyeLike" || op == "Shape" || op == "Size" || (op == "CastLike" && input == 1);
}

// Rounding makes the gradient 0 everywhere. So the numbers of quantised ops are not trained: neither scales nor what
// is rounded.
bool has_no_gradient(const NodeProto& node, std::size_t input) {
  static const OpNames none{
      "ArgMax",      "ArgMin",        "Ceil",           "ConvInteger",    "DynamicQuantizeLinear",
      "Equal",       "Floor",         "Greater",        "GreaterOrEqual", "Hardmax",
      "IsInf",       "IsNaN",         "Less",           "LessOrEqual",    "MatMulInteger",
      "QLinearConv", "QLinearMatMul", "QuantizeLinear", "Round",          "Sign"};
  if (node.op == "DequantizeLinear") return input > 0;
  if (node.op != "Cast") return none.contains(node.op);
  const auto to = std::ranges::find(node.attributes, "to", &AttributeProto::name);
  static const std::set<std::int64_t> floating{
      std::int64_t(ElementType::float32), std::int64_t(ElementType::float64),
      std::int64_t(ElementType::float16), std::int64_t(ElementType::bfloat16)};
  return to != node.attributes.end() && !floating.contains(to->integer);
}

InputRole role_of(const NodeProto& node, std::size_t input) {
  if (reads_early(node.op, input)) return InputRole::early;
  if (reads_type_only(node.op, input)) return InputRole::type_only;
  if (has_no_gradient(node, input)) return InputRole::without_gradient;
  return node.op == "BatchNormalization" && input >= 3 ? InputRole::moment : InputRole::differentiable;
}

void add(ValueUses& uses, InputRole role, const ValueUses& of_outputs) {
  if (role == InputRole::type_only) return;
  uses.is_needed_early |= role == InputRole::early || of_outputs.is_needed_early;
  uses.is_moment |= role == InputRole::moment || of_outputs.is_moment;
  uses.has_gradient |= role == InputRole::differentiable && of_outputs.has_gradient;
}

}  // namespace

std::map<std::string, ValueUses> uses_of_values(const GraphProto& graph) {
  std::map<std::string, ValueUses> uses;
  for (const ValueProto& output : graph.outputs) uses[output.name].has_gradient = true;
  // A node comes after those that compute its inputs.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    ValueUses of_outputs;
    for (const std::string& output : node->outputs) add(of_outputs, InputRole::differentiable, uses[output]);
    for (std::size_t i = 0; i < node->inputs.size(); ++i)
      add(uses[node->inputs[i]], role_of(*node, i), of_outputs);
  }
  return uses;
}

}  // namespace plexaura::onnx
