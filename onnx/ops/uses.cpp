#include "onnx/ops/uses.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace plexaura::onnx {

namespace {

// The use of an input by a node.
enum class InputRole {
  differentiable,  // the outputs have a gradient by the input
  without_gradient,
  type_only,  // the node reads the type or the shape, but no element
  early,      // the builder of the node reads the elements
  moment,     // a running moment of batch norm
};

using OpNames = std::set<std::string, std::less<>>;

bool reads_early(const std::string& op, std::size_t input) {
  static const OpNames all{"BlackmanWindow", "ConstantOfShape", "HammingWindow",
                           "HannWindow",     "MelWeightMatrix", "Range"};
  static const OpNames all_but_first{"AffineGrid", "CenterCropPad", "Clip",      "Col2Im",  "CumSum",
                                     "DFT",        "Dropout",       "Expand",    "Pad",     "Reshape",
                                     "Resize",     "Slice",         "Split",     "Squeeze", "Tile",
                                     "TopK",       "Trilu",         "Unsqueeze", "Upsample"};
  static const OpNames second{"Adagrad", "Adam", "Compress", "Momentum", "OneHot"};
  if (op == "STFT") return input == 1 || input == 3;
  return all.contains(op) || (input > 0 && (all_but_first.contains(op) || op.starts_with("Reduce"))) ||
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

// Returns true if the uses change.
bool add(ValueUses& uses, InputRole role, const ValueUses& of_outputs) {
  const ValueUses before = uses;
  if (role == InputRole::type_only) return false;
  uses.is_needed_early |= role == InputRole::early || of_outputs.is_needed_early;
  uses.is_moment |= role == InputRole::moment || of_outputs.is_moment;
  uses.has_gradient |= role == InputRole::differentiable && of_outputs.has_gradient;
  return uses.is_needed_early != before.is_needed_early || uses.is_moment != before.is_moment ||
         uses.has_gradient != before.has_gradient;
}

const GraphProto* graph_of(const NodeProto& node, std::string_view attribute) {
  const auto found = std::ranges::find(node.attributes, attribute, &AttributeProto::name);
  return found == node.attributes.end() ? nullptr : found->graph.get();
}

// Links values and nodes of a file to those that they are computed from, also within the bodies of loops.
class Dependencies {
 public:
  struct Link {
    std::size_t source = 0;  // a value or a node
    InputRole role = InputRole::differentiable;
  };

  explicit Dependencies(const GraphProto& graph) {
    add_nodes(graph);
    for (const ValueProto& output : graph.outputs) place_of(output.name);
  }

  const std::map<std::string, std::size_t>& values() const { return places_; }  // index in links() by value
  const std::vector<std::vector<Link>>& links() const { return links_; }

 private:
  std::size_t place_of(const std::string& value) {
    const auto [found, is_new] = places_.try_emplace(value, links_.size());
    if (is_new) links_.emplace_back();
    return found->second;
  }

  void link(std::size_t place, const std::string& source, InputRole role) {
    const std::size_t of_source = place_of(source);  // may move the links
    links_[place].push_back({of_source, role});
  }
  void link(const std::string& value, const std::string& source) {
    link(place_of(value), source, InputRole::differentiable);
  }

  void add_nodes(const GraphProto& graph) {
    for (const NodeProto& node : graph.nodes) {
      const std::size_t place = links_.size();
      links_.emplace_back();
      for (const std::string& output : node.outputs) links_[place_of(output)].push_back({place});
      add_inputs(node, place);
      for (const AttributeProto& attribute : node.attributes)
        if (attribute.graph) add_nodes(*attribute.graph);
    }
  }

  // Adds the links to the values that a node reads. `If` and `Loop` read their conditions and the number of steps
  // themselves. The other inputs of `If`, `Loop` and `Scan` are linked to the inputs of their graphs, so that they have the
  // uses that the graphs make of them.
  void add_inputs(const NodeProto& node, std::size_t place) {
    const auto add_early = [&](const std::string& value) { link(place, value, InputRole::early); };
    const GraphProto* body = graph_of(node, "body");
    if (node.op == "If") {
      for (const std::string& condition : node.inputs) add_early(condition);
      for (const char* branch : {"then_branch", "else_branch"})
        if (const GraphProto* taken = graph_of(node, branch)) add_body(node, *taken, {});
    } else if (node.op == "Loop" && body != nullptr) {
      for (std::size_t i = 0; i < std::min<std::size_t>(2, node.inputs.size()); ++i)
        add_early(node.inputs[i]);
      if (!body->outputs.empty()) add_early(body->outputs[0].name);
      if (!body->outputs.empty() && body->inputs.size() > 1)
        link(body->inputs[1].name, body->outputs[0].name);
      add_body(node, *body, {2, 2, 1, body->inputs.size() - std::min<std::size_t>(2, body->inputs.size())});
      if (node.inputs.size() > 1 && body->inputs.size() > 1) link(body->inputs[1].name, node.inputs[1]);
    } else if (node.op == "Scan" && body != nullptr) {
      const auto scanned = std::ranges::find(node.attributes, "num_scan_inputs", &AttributeProto::name);
      const std::size_t inputs = body->inputs.size();
      const std::size_t before = node.inputs.size() - std::min(node.inputs.size(), inputs);
      const std::int64_t count = scanned == node.attributes.end() ? 0 : scanned->integer;
      add_body(node, *body, {before, 0, 0, inputs - std::min(inputs, static_cast<std::size_t>(count))});
    } else {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) link(place, node.inputs[i], role_of(node, i));
    }
  }

  // The index of the first of the values that a node passes to its graph, and gets from it.
  struct BodyPlaces {
    std::size_t node_input = 0;
    std::size_t body_input = 0;
    std::size_t body_output = 0;
    std::size_t carried = 0;  // so many outputs of the body are its inputs in the next iteration
  };

  void add_body(const NodeProto& node, const GraphProto& body, BodyPlaces from) {
    const std::size_t outputs = body.outputs.size() - std::min(body.outputs.size(), from.body_output);
    const std::size_t inputs = body.inputs.size() - std::min(body.inputs.size(), from.body_input);
    for (std::size_t i = 0; i < inputs && from.node_input + i < node.inputs.size(); ++i)
      link(body.inputs[from.body_input + i].name, node.inputs[from.node_input + i]);
    for (std::size_t i = 0; i < outputs && i < node.outputs.size(); ++i)
      link(node.outputs[i], body.outputs[from.body_output + i].name);
    for (std::size_t i = 0; i < outputs && i < inputs && i < from.carried; ++i)
      link(body.inputs[from.body_input + i].name, body.outputs[from.body_output + i].name);
  }

  std::map<std::string, std::size_t> places_;
  std::vector<std::vector<Link>> links_;  // links by value or node
};

}  // namespace

// Visits a value or a node again when its uses have changed. They change three times at most.
std::map<std::string, ValueUses> uses_of_values(const GraphProto& graph) {
  const Dependencies dependencies(graph);
  std::vector<ValueUses> uses(dependencies.links().size());
  for (const ValueProto& output : graph.outputs)
    uses[dependencies.values().at(output.name)].has_gradient = true;
  std::vector<std::size_t> waiting(uses.size());
  std::iota(waiting.begin(), waiting.end(), std::size_t{0});
  while (!waiting.empty()) {
    const std::size_t place = waiting.back();
    waiting.pop_back();
    for (const auto& [source, role] : dependencies.links()[place])
      if (add(uses[source], role, uses[place])) waiting.push_back(source);
  }
  std::map<std::string, ValueUses> by_name;
  for (const auto& [name, place] : dependencies.values()) by_name[name] = uses[place];
  return by_name;
}

std::set<std::string> values_needed_for(const GraphProto& graph, const std::string& value) {
  const Dependencies dependencies(graph);
  const auto found = dependencies.values().find(value);
  if (found == dependencies.values().end()) return {value};
  std::vector<bool> is_needed(dependencies.links().size(), false);
  std::vector<std::size_t> waiting{found->second};
  while (!waiting.empty()) {
    const std::size_t place = waiting.back();
    waiting.pop_back();
    if (is_needed[place]) continue;
    is_needed[place] = true;
    for (const auto& [source, role] : dependencies.links()[place])
      if (role != InputRole::type_only) waiting.push_back(source);
  }
  std::set<std::string> needed;
  for (const auto& [name, place] : dependencies.values())
    if (is_needed[place]) needed.insert(name);
  return needed;
}

}  // namespace plexaura::onnx
