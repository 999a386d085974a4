#include "onnx/ops/graph_builder.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <set>

#include "onnx/format/tensor_data.h"
#include "onnx/ops/table.h"

namespace plexaura::onnx {

namespace {

std::string label_of(const NodeProto& node, std::size_t index) {
  return node.name.empty() ? fmt::format("{}", index) : fmt::format("'{}'", node.name);
}

// The version of the set of ops to which a node belongs; 0 if the file has no set of its domain.
std::int64_t version_of(const NodeProto& node, const FileFacts& facts) {
  if (node.version) return *node.version;
  const auto found = facts.opsets.find(node.domain);
  return found == facts.opsets.end() ? 0 : found->second;
}

const Row* row_of(const NodeProto& node, const FileFacts& facts) {
  const bool is_standard = node.domain.empty() || node.domain == "ai.onnx.preview.training";
  return is_standard ? find_row(node.op, version_of(node, facts)) : nullptr;
}

// The ops of a file that are not supported, with the labels of their nodes.
struct MissingOps {
  std::map<std::string, std::vector<std::string>> nodes;
  bool some_have_later_version = false;  // a later version of some op is supported
  bool some_have_none = false;
};

bool has_later_version(const NodeProto& node) {
  return node.domain.empty() && find_row(node.op, std::numeric_limits<std::int64_t>::max()) != nullptr;
}

std::string name_of_op(const NodeProto& node, const FileFacts& facts) {
  if (has_later_version(node)) return fmt::format("{} of version {}", node.op, version_of(node, facts));
  return node.domain.empty() ? node.op : node.domain + "." + node.op;
}

void collect_missing(const GraphProto& graph, const FileFacts& facts, MissingOps& missing) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeProto& node = graph.nodes[i];
    if (row_of(node, facts) == nullptr) {
      missing.nodes[name_of_op(node, facts)].push_back(label_of(node, i));
      (has_later_version(node) ? missing.some_have_later_version : missing.some_have_none) = true;
    }
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) collect_missing(*attribute.graph, facts, missing);
  }
}

const char* advice_for(const MissingOps& missing) {
  if (!missing.some_have_later_version) return "replace them before the export";
  if (!missing.some_have_none) return "export it with a newer version of the ops";
  return "export it with a newer version of the ops, and replace those that are named without a version "
         "before that";
}

class GraphBuilder {
 public:
  GraphBuilder(Graph& graph, const InitialiserNodes& initialisers, const FileFacts& facts,
               const BuildLimits& limits)
      : graph_(graph),
        initialisers_(initialisers),
        facts_(facts),
        known_(graph, limits),
        limits_(limits),
        seen_(graph.size()) {}

  // Adds a graph of the file. It may read values of the graphs around it.
  std::vector<Node> build(const GraphProto& proto, NamedNodes inputs) {
    scopes_.push_back(std::move(inputs));
    for (const TensorProto& tensor : proto.initialisers)
      at_place("the initialisers", [&] { define(tensor.name, initialisers_.at(&tensor)); });
    for (std::size_t i = 0; i < proto.nodes.size(); ++i) add(proto.nodes[i], label_of(proto.nodes[i], i));
    std::vector<Node> outputs;
    for (const ValueProto& output : proto.outputs)
      at_place("the outputs", [&] { outputs.push_back(find(output.name)); });
    scopes_.pop_back();
    return outputs;
  }

 private:
  bool is_within_node() const { return scopes_.size() > 1; }

  // Calls `work`. In the outermost graph, adds the file and the place to its error, as add() does for a node.
  template <class Work>
  void at_place(std::string_view place, const Work& work) const {
    try {
      work();
    } catch (const UserError& error) {
      if (is_within_node()) throw;
      throw UserError(fmt::format("{}: {}: {}", facts_.file, place, error.what()));
    }
  }

  // The function that AddInner of onnx/ops/call.h describes.
  std::vector<Node> add_within_node(const GraphProto& inner, const std::vector<Node>& inputs,
                                    const std::string& place) {
    try {
      unrolled_ += std::max<std::int64_t>(1, static_cast<std::int64_t>(inner.nodes.size()));
      if (unrolled_ > limits_.unrolled_nodes)
        throw UserError(fmt::format(
            "the loops and branches of the file become {} nodes up to here, and at most {} are supported; "
            "export the model with fewer iterations",
            unrolled_, limits_.unrolled_nodes));
      count_values(inputs.size());
      return build(inner, named(inner, inputs));
    } catch (const UnknownValue& error) {
      throw UnknownValue(error.name(), fmt::format("{}: {}", place, error.what()));
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", place, error.what()));
    }
  }

  // Limits the values that loops and branches read and make, for a body with few nodes may pass on any number.
  void count_values(std::size_t count) {
    const std::int64_t most = 32 * limits_.unrolled_nodes;
    unrolled_values_ += static_cast<std::int64_t>(count);
    if (unrolled_values_ > most)
      throw UserError(fmt::format(
          "the loops and branches of the file read and make more than {} values up to here, which is the "
          "limit; export the model with fewer iterations",
          most));
  }

  static NamedNodes named(const GraphProto& inner, const std::vector<Node>& inputs) {
    if (inner.inputs.size() != inputs.size())
      throw UserError(
          fmt::format("it has {} inputs, but its node passes {}", inner.inputs.size(), inputs.size()));
    NamedNodes values;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueProto& input = inner.inputs[i];
      if (input.type != ElementType::undefined && dtype_of(input.type) != inputs[i].dtype())
        throw UserError(fmt::format("its input '{}' must be {}, not {}", input.name,
                                    name_of(dtype_of(input.type)), name_of(inputs[i].dtype())));
      if (!values.emplace(input.name, inputs[i]).second)
        throw UserError(fmt::format("it has two inputs with the name '{}'; names must differ", input.name));
    }
    return values;
  }

  void add(const NodeProto& node, const std::string& label) {
    const std::string file = is_within_node() ? "" : facts_.file + ": ";
    const auto place = [&](const std::exception& error) {
      return fmt::format("{}node {} ({}): {}", file, label, node.op, error.what());
    };
    try {
      const Graph::WithOrigin origin(
          graph_, Origin{.file = facts_.file, .scope = node.name.empty() ? node.op : node.name});
      store(node, node.op == "Constant" ? shared_constant(node) : run(node));
      count_constants(node.op == "Constant");
    } catch (const UnknownValue& error) {
      throw UnknownValue(error.name(), place(error));
    } catch (const UserError& error) {
      throw UserError(place(error));
    } catch (const std::logic_error& error) {  // broken rules about shapes and axes
      throw UserError(place(error));
    }
  }

  std::vector<Node> run(const NodeProto& node) {
    const Row* row = row_of(node, facts_);
    if (row == nullptr) throw UserError("the op is not supported");
    std::vector<Node> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(input.empty() ? Node() : find(input));
    Call call(graph_, node, version_of(node, facts_), std::move(inputs), facts_.folder, add_inner_);
    std::vector<Node> outputs = row->build(call);
    call.check_all_read();
    const bool all_known = [&] {
      // Each node within a graph of the node has been computed already where that is possible.
      for (const AttributeProto& attribute : node.attributes)
        if (attribute.graph) return false;
      for (std::size_t i = 0; i < call.inputs(); ++i)
        if (call.has(i) && known_value(call[i]) == nullptr) return false;
      return true;
    }();
    if (all_known)
      for (Node& output : outputs) make_known(output);
    known_.forget();
    return outputs;
  }

  // All iterations of a loop share the constants of its body, and all calls of a function its tensors.
  const std::vector<Node>& shared_constant(const NodeProto& node) {
    const bool is_tensor = node.attributes.size() == 1 && node.attributes[0].name == "value" &&
                           node.attributes[0].tensor != nullptr;
    const void* shared = is_tensor ? static_cast<const void*>(node.attributes[0].tensor.get()) : &node;
    const auto found = shared_constants_.find(shared);
    return found != shared_constants_.end() ? found->second
                                            : shared_constants_.emplace(shared, run(node)).first->second;
  }

  void make_known(Node& output) {
    if (output.is_empty() || known_value(output) != nullptr) return;
    if (auto value = known_.compute(output)) output = graph_.constant(std::move(*value));
  }

  // Adds up the bytes of the constants that were added to the graph since the last call, unless their elements are in
  // the file. Throws UserError if the sum exceeds the limit.
  void count_constants(bool are_in_file) {
    for (; seen_ < graph_.size(); ++seen_) {
      const NodeRecord& record = graph_.record(static_cast<NodeId>(seen_));
      const Leaf* leaf = as_leaf(*record.op);
      if (are_in_file || leaf == nullptr || leaf->kind() != LeafKind::constant) continue;
      constant_bytes_ += record.types[0].bytes();
      if (constant_bytes_ > limits_.constant_bytes)
        throw UserError(fmt::format(
            "the constants that are computed up to here have more than {} bytes; store them in the file, "
            "or make them smaller",
            limits_.constant_bytes));
    }
  }

  void store(const NodeProto& node, const std::vector<Node>& outputs) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      if (i >= outputs.size() || outputs[i].is_empty())
        throw UserError(fmt::format("its output {} ('{}') is not supported", i, node.outputs[i]));
      if (static_cast<std::size_t>(outputs[i].shape().rank()) > most_axes)
        throw UserError(fmt::format("its output {} ('{}') has {} axes; at most {} are supported", i,
                                    node.outputs[i], outputs[i].shape().rank(), most_axes));
      define(node.outputs[i], outputs[i]);
    }
  }

  void define(const std::string& name, const Node& value) {
    if (is_within_node()) count_values(1);
    if (!scopes_.back().emplace(name, value).second)
      throw UserError(
          fmt::format("there is a value '{}' before it; each value needs a name of its own", name));
  }

  Node find(const std::string& name) {
    if (is_within_node()) count_values(1);
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    throw UserError(fmt::format("the value '{}' is not made by any node before", name));
  }

  Graph& graph_;
  const InitialiserNodes& initialisers_;
  const FileFacts& facts_;
  KnownValues known_;
  BuildLimits limits_;
  std::size_t seen_;                 // nodes of the graph whose constants are counted
  std::int64_t constant_bytes_ = 0;  // bytes of constants that were computed
  std::int64_t unrolled_ = 0;        // number of nodes of loops and branches
  std::int64_t unrolled_values_ = 0;
  std::vector<NamedNodes> scopes_;  // the values of each graph that is being added, from the outermost one
  // Constants of nodes, by the tensor or, without one, by the file's node.
  std::map<const void*, std::vector<Node>> shared_constants_;
  const AddInner add_inner_ = [this](const GraphProto& inner, const std::vector<Node>& inputs,
                                     const std::string& place) {
    return add_within_node(inner, inputs, place);
  };
};

}  // namespace

void check_ops(const GraphProto& graph, const FileFacts& facts) {
  MissingOps missing;
  collect_missing(graph, facts, missing);
  if (missing.nodes.empty()) return;
  std::vector<std::string> lines;
  for (const auto& [op, nodes] : missing.nodes)
    lines.push_back(
        fmt::format("{} ({} {})", op, nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", ")));
  throw UserError(fmt::format("{}: these ops are not supported: {}; {}", facts.file, fmt::join(lines, "; "),
                              advice_for(missing)));
}

std::vector<Node> build_graph(Graph& graph, const GraphProto& proto, NamedNodes inputs,
                              const InitialiserNodes& initialisers, const FileFacts& facts,
                              const BuildLimits& limits) {
  return GraphBuilder(graph, initialisers, facts, limits).build(proto, std::move(inputs));
}

}  // namespace plexaura::onnx
