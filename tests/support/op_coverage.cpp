#include "tests/support/op_coverage.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/autodiff/gradients.h"
#include "core/graph/graph.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "tests/support/option_types.h"

namespace plexaura::testing {

namespace {

constexpr auto every_dtype = std::to_array({DType::float64, DType::float32, DType::bfloat16, DType::float16,
                                            DType::int64, DType::int32, DType::uint8, DType::boolean});

struct KeyList {
  std::vector<std::string> keys = {};

  template <class T>
  void operator()(std::string_view key, const T&) {
    keys.emplace_back(key);
  }
  template <class T>
  void operator()(std::string_view key, const T&, const std::type_identity_t<T>&) {
    keys.emplace_back(key);
  }
};

// Returns the names of all options, also of those that are not printed.
std::vector<std::string> option_names(const Op& op) {
  KeyList list;
  AllOptionTypes::visit(op, [&]<class Options>(const Options& options) { Options::fields(options, list); });
  return list.keys;
}

bool accepts(const Op& op, std::vector<TensorType> types, DType from, DType to) {
  for (TensorType& type : types)
    if (type.dtype == from) type.dtype = to;
  try {
    op.infer(types);
    return true;
  } catch (const RuleError&) {
    return false;
  }
}

void add_dtypes(OpCoverage& to, const Op& op, const std::vector<TensorType>& inputs) {
  std::set<DType> seen;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = inputs[i].dtype;
    to.used.insert({i, dtype});
    if (!seen.insert(dtype).second) continue;
    for (const DType other : every_dtype)
      if (accepts(op, inputs, dtype, other)) to.accepted.insert({i, other});
  }
}

void add_options(OpCoverage& to, const Op& op) {
  std::map<std::string, std::string> texts;
  const Description description = op.description();
  for (const auto& [key, value] : description.fields()) texts[key] = text_of(value);
  for (const std::string& key : option_names(op)) to.options[key].insert(texts[key]);
}

void add_shape(OpCoverage& to, const Shape& shape) {
  to.has_one = to.has_one || std::ranges::count(shape.extents(), 1) > 0;
  to.has_none = to.has_none || std::ranges::count(shape.extents(), 0) > 0;
}

void add_node(OpCoverage& to, const Graph& graph, const NodeRecord& record) {
  std::vector<TensorType> inputs;
  for (const Value input : record.inputs) inputs.push_back(graph.type(input));
  add_dtypes(to, *record.op, inputs);
  add_options(to, *record.op);
  for (const TensorType& type : inputs) add_shape(to, type.shape);
  for (const TensorType& type : record.types) add_shape(to, type.shape);
}

// Returns the gradients of the sum of all elements with respect to the floating inputs that it depends on.
std::vector<Node> gradients_of(const std::vector<Node>& outputs, const std::vector<Node>& inputs) {
  Node total;
  for (const Node& output : outputs) {
    const NodeRecord& record = output.graph().record(output.id());
    const auto kept = record.types.size() - static_cast<std::size_t>(record.op->traits().saved_outputs);
    if (output.dtype() != DType::float64 || output.value().output >= kept) continue;
    total = total.is_empty() ? sum(output * output) : total + sum(output * output);
  }
  std::vector<Node> wrt;
  std::ranges::copy_if(inputs, std::back_inserter(wrt),
                       [](const Node& input) { return is_floating(input.dtype()); });
  if (total.is_empty()) return {};
  std::vector<Node> grads = gradients_or_empty(total, wrt);
  std::erase_if(grads, [](const Node& grad) { return grad.is_empty(); });
  return grads;
}

void build_gradients(const OpCase& op_case, std::vector<Node> outputs, const std::vector<Node>& inputs) {
  const int orders = op_case.differentiable ? (op_case.second_order ? 2 : 1) : 0;
  for (int order = 0; order < orders; ++order) outputs = gradients_of(outputs, inputs);
}

}  // namespace

void add_case(CoverageOfOps& to, const OpCase& op_case) {
  OpCoverage& own = to[op_case.op];
  ++own.cases;
  own.first_order |= op_case.differentiable;
  own.second_order |= op_case.differentiable && op_case.second_order;
  for (const DType dtype : op_case.dtypes) {
    Graph graph;
    const std::vector<Node> inputs = add_inputs(graph, op_case, dtype);
    const std::vector<Node> outputs = op_case.build(graph, inputs);
    if (dtype == DType::float64) build_gradients(op_case, outputs, inputs);
    for (NodeId id = 0; id < graph.size(); ++id) {
      const NodeRecord& record = graph.record(id);
      add_node(to[std::string(record.op->name())], graph, record);
    }
  }
}

}  // namespace plexaura::testing
