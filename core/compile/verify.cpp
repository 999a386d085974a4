#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/compile/passes.h"
#include "core/graph/print.h"

namespace plexaura {

void verify(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const NodeRecord& record = graph.record(id);
    std::vector<TensorType> types;
    for (const Value input : record.inputs) {
      if (input.node >= id || input.output >= graph.record(input.node).types.size())
        throw InternalError(fmt::format("{} names a value that is not older", name_of(graph, id)));
      types.push_back(graph.type(input));
    }
    if (record.op->infer(types) != record.types)
      throw InternalError(fmt::format("{} has types that its op does not infer", name_of(graph, id)));
  }
  for (const Update& update : graph.updates())
    if (graph.type(update.buffer) != graph.type(update.next))
      throw InternalError(
          fmt::format("the update of {} has another type", name_of(graph, update.buffer.node)));
}

namespace {

std::vector<const Leaf*> stored_leaves(const Graph& graph) {
  std::vector<const Leaf*> leaves;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const Leaf* leaf = as_leaf(*graph.record(id).op);
        leaf != nullptr && (leaf->kind() == LeafKind::parameter || leaf->kind() == LeafKind::buffer))
      leaves.push_back(leaf);
  return leaves;
}

using LeavesByName = std::map<std::string_view, const Leaf*>;

void verify_gradient(const ProgramOutput& output, const LeavesByName& leaves) {
  const std::string& name = output.gradient_of;
  const auto leaf = leaves.find(name);
  if (leaf == leaves.end()) {
    std::vector<std::string> known;
    for (const auto& [other, of] : leaves) known.emplace_back(other);
    throw UserError(
        fmt::format("compile: an output is the gradient of '{}', and the graph has no such parameter{}", name,
                    did_you_mean(name, known)));
  }
  if (const TensorType& type = leaf->second->type(); output.node.type() != type)
    throw UserError(
        fmt::format("compile: the gradient of '{}' is {} and must be {} like it; reduce or cast() it", name,
                    to_string(output.node.type()), to_string(type)));
}

// Throws UserError for a wrong output in the tail. The tail has the dtype of the parameters; see ArenaTypes.
void verify_tail(const ProgramOutput& output, const std::vector<const Leaf*>& leaves) {
  const auto slot = static_cast<std::int64_t>(*output.tail);
  if (slot >= tail_count)
    throw UserError(
        fmt::format("compile: an output goes to slot {} of the tail, which has {}", slot, tail_count));
  const TensorType& type = output.node.type();
  const DType dtype = leaves.empty() ? type.dtype : leaves[0]->type().dtype;
  if (!is_floating(dtype) || type != TensorType{dtype, {}})
    throw UserError(
        fmt::format("compile: slot {} of the tail would get {}, but takes a scalar of the parameters' dtype; "
                    "reduce and cast() it",
                    slot, to_string(type)));
}

}  // namespace

void verify_no_operands(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (const Leaf* leaf = as_leaf(*graph.record(id).op);
        leaf != nullptr && leaf->kind() == LeafKind::operand)
      throw UserError(fmt::format(
          "compile: the program needs a value of the body of the scan at {} outside of it; return the value "
          "from the body and use what the scan returns",
          to_string(graph.record(id).origin)));
}

void verify_outputs(const Graph& graph, std::span<const ProgramOutput> outputs) {
  const std::vector<const Leaf*> leaves = stored_leaves(graph);
  LeavesByName by_name;
  for (const Leaf* leaf : leaves) by_name.emplace(leaf->label(), leaf);
  std::set<std::string> gradients;
  std::set<TailSlot> slots;
  for (const ProgramOutput& output : outputs) {
    if (&output.node.graph() != &graph) throw UserError("compile: an output belongs to another graph");
    if (!output.gradient_of.empty()) verify_gradient(output, by_name);
    if (output.tail) verify_tail(output, leaves);
    const bool twice = (!output.gradient_of.empty() && !gradients.insert(output.gradient_of).second) ||
                       (output.tail && !slots.insert(*output.tail).second);
    if (twice || (output.tail && !output.gradient_of.empty()))
      throw UserError(
          "compile: an output has two places, or two outputs have the same; give each its own gradient_of, "
          "or its own slot of the tail");
  }
}

}  // namespace plexaura
