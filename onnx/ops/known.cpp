#include "onnx/ops/known.h"

#include <algorithm>
#include <string_view>

namespace plexaura::onnx {

namespace {

// True for ops whose kernels read or write each element a few times at most.
bool is_linear(const Op& op) {
  static const std::set<std::string_view> names{
      "broadcast_to", "cast", "concat",          "cumsum",  "gather",  "max",
      "mean",         "min",  "one_hot",         "permute", "reshape", "scatter",
      "slice",        "sum",  "take_along_axis", "unfold",  "where"};
  const OpTraits traits = op.traits();
  return traits.elementwise || traits.view || names.contains(op.name());
}

// Returns the product, or `most` + 1 if it is larger than `most`.
std::int64_t bounded_product(std::int64_t a, std::int64_t b, std::int64_t most) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? most + 1 : std::min(product, most + 1);
}

}  // namespace

// Nodes are visited from the oldest to the newest one, without recursion, since a chain may be long.
std::optional<Tensor> KnownValues::compute(const Node& node) {
  std::set<NodeId> needed{node.id()};
  std::vector<NodeId> waiting{node.id()};
  while (!waiting.empty()) {
    const NodeId id = waiting.back();
    waiting.pop_back();
    if (outputs_.contains(id)) continue;
    for (const Value input : graph_.record(id).inputs)
      if (needed.insert(input.node).second) waiting.push_back(input.node);
  }
  if (!std::ranges::all_of(needed, [&](NodeId id) { return outputs_.contains(id) || run(id); }))
    return std::nullopt;
  return value_of(node.value());
}

const Tensor& KnownValues::value_of(Value value) const {
  const Leaf* leaf = as_leaf(*graph_.record(value.node).op);
  return leaf != nullptr ? *leaf->value() : outputs_.at(value.node)[value.output];
}

void KnownValues::forget() {
  outputs_.clear();
  refused_.clear();
}

// Checks the limits for a node, and counts it.
bool KnownValues::takes(const NodeRecord& record) {
  std::int64_t bytes = 0;
  std::int64_t written = 0;
  for (const TensorType& type : record.types) {
    if (type.bytes() > limits_.bytes_of_value) return false;
    bytes += type.bytes();
    written += type.shape.elements();
  }
  std::int64_t read = 0;
  for (const Value input : record.inputs) read += graph_.type(input).shape.elements();
  const std::int64_t operations =
      is_linear(*record.op) ? written + read : bounded_product(written, read, limits_.operations);
  if (bytes > limits_.bytes - bytes_ || operations > limits_.operations - operations_) return false;
  bytes_ += bytes;
  operations_ += operations;
  return true;
}

bool KnownValues::run(NodeId id) {
  const NodeRecord& record = graph_.record(id);
  if (const Leaf* leaf = as_leaf(*record.op)) return leaf->kind() == LeafKind::constant;
  const OpTraits traits = record.op->traits();
  const HostKernel kernel = record.op->reference();
  if (kernel == nullptr || traits.random || traits.collective) return false;
  if (refused_.contains(id) || !takes(record)) {
    refused_.insert(id);
    return false;
  }
  std::vector<HostView> inputs;
  std::vector<HostView> results;
  for (const Value input : record.inputs)
    inputs.push_back({const_cast<std::byte*>(value_of(input).data()), &graph_.type(input)});
  std::vector<Tensor>& outputs = outputs_[id];
  for (const TensorType& type : record.types) outputs.emplace_back(type);
  for (std::size_t i = 0; i < record.types.size(); ++i)
    results.push_back({outputs[i].data(), &record.types[i]});
  kernel(*record.op, {inputs, results});
  return true;
}

}  // namespace plexaura::onnx
