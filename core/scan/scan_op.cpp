#include "core/scan/scan_op.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/scan/scan_gradient.h"

namespace plexaura {

namespace {

// Returns the operands that the body does not read. Carries are never among them, because the loop itself
// passes them on.
std::vector<std::size_t> unread_operands(const Subgraph& body, std::size_t carries) {
  std::vector<std::size_t> unread;
  for (std::size_t operand = carries; operand < body.operands(); ++operand)
    if (!body.reads(operand)) unread.push_back(operand);
  return unread;
}

bool has_random_op(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph.record(id).op->traits().random) return true;
  return false;
}

}  // namespace

Scan::Scan(ScanForm form, std::shared_ptr<const Subgraph> body, std::shared_ptr<const Subgraph> whole)
    : form_(form), body_(std::move(body)), whole_(std::move(whole)) {
  traits_.saved_outputs = static_cast<int>(form_.saved);
  traits_.random = has_random_op(body_->graph());
  traits_.unread_inputs = unread_operands(*body_, form_.carries);
}

bool Scan::is_stacked(std::size_t operand) const {
  return (operand >= form_.carries && operand < form_.carries + form_.stacked) ||
         operand >= whole().operands();
}

std::vector<TensorType> Scan::infer(std::span<const TensorType> inputs) const {
  if (inputs.size() != body_->operands())
    throw RuleError(fmt::format("takes {} operands, not {}", body_->operands(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = body_->operand_type(i);
    const TensorType wanted = is_stacked(i) ? stacked(type, form_.steps) : type;
    if (inputs[i] != wanted)
      throw RuleError(
          fmt::format("operand {} must be {}, not {}", i, to_string(wanted), to_string(inputs[i])));
  }
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < outputs(); ++i) {
    const TensorType& type = body_->output_type(i);
    types.push_back(i < form_.carries ? type : stacked(type, form_.steps));
  }
  return types;
}

std::vector<Node> Scan::vjp(const VjpRequest& request) const { return scan_gradient(*this, request); }

Description Scan::description() const {
  Description description;
  description.add("steps", form_.steps)
      .add("carries", static_cast<std::int64_t>(form_.carries))
      .add("stacked", static_cast<std::int64_t>(form_.stacked))
      .add("saved", static_cast<std::int64_t>(form_.saved))
      .add("reverse", form_.reverse)
      .add("recompute", form_.recompute)
      .add("body", body_);
  if (is_cut()) description.add("whole", whole_);
  return description;
}

std::shared_ptr<const Scan> make_scan(ScanForm form, const Subgraph& body) {
  std::vector<Value> outputs = body.outputs();
  const Graph& graph = body.graph();
  for (NodeId id = 0; id < graph.size() && !form.recompute; ++id)
    for (std::uint32_t output = 0; !graph.record(id).inputs.empty() && output < graph.record(id).types.size();
         ++output)
      outputs.push_back({id, output});
  form.saved = outputs.size() - body.outputs().size();
  return std::make_shared<const Scan>(form, body.with_outputs(std::move(outputs)));
}

const Scan* as_scan(const Op& op) { return dynamic_cast<const Scan*>(&op); }

TensorType element_of(const TensorType& stacked) {
  std::vector<std::int64_t> extents = stacked.shape.extents();
  extents.erase(extents.begin());
  return {stacked.dtype, Shape(std::move(extents))};
}

TensorType stacked(const TensorType& element, std::int64_t steps) {
  std::vector<std::int64_t> extents = element.shape.extents();
  extents.insert(extents.begin(), steps);
  return {element.dtype, Shape(std::move(extents))};
}

}  // namespace plexaura
