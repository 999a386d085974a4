#include "onnx/ops/graph_builder.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
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
  const auto found = facts.opsets.find(node.domain);
  return found == facts.opsets.end() ? 0 : found->second;
}

const Row* row_of(const NodeProto& node, const FileFacts& facts) {
  const bool is_standard = node.domain.empty() || node.domain == "ai.onnx.preview.training";
  return is_standard ? find_row(node.op, version_of(node, facts)) : nullptr;
}

void collect_missing(const GraphProto& graph, const FileFacts& facts,
                     std::map<std::string, std::vector<std::string>>& missing) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeProto& node = graph.nodes[i];
    if (row_of(node, facts) == nullptr)
      missing[node.domain.empty() ? node.op : node.domain + "." + node.op].push_back(label_of(node, i));
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) collect_missing(*attribute.graph, facts, missing);
  }
}

class GraphBuilder {
 public:
  GraphBuilder(Graph& graph, const GraphProto& proto, NamedNodes values, const FileFacts& facts,
               const BuildLimits& limits)
      : graph_(graph),
        proto_(proto),
        values_(std::move(values)),
        facts_(facts),
        known_(graph, limits),
        most_constants_(limits.constant_bytes) {}

  std::vector<Node> build() {
    for (std::size_t i = 0; i < proto_.nodes.size(); ++i) add(proto_.nodes[i], label_of(proto_.nodes[i], i));
    std::vector<Node> outputs;
    for (const ValueProto& output : proto_.outputs) outputs.push_back(find(output.name));
    return outputs;
  }

 private:
  void add(const NodeProto& node, const std::string& label) {
    const auto place = [&](const std::exception& error) {
      return fmt::format("{}: node {} ({}): {}", facts_.file, label, node.op, error.what());
    };
    try {
      const Graph::WithOrigin origin(
          graph_, Origin{.file = facts_.file, .scope = node.name.empty() ? node.op : node.name});
      const std::size_t before = graph_.size();
      store(node, run(node));
      if (node.op != "Constant") count_constants(before);
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
    Call call(graph_, node, version_of(node, facts_), std::move(inputs), facts_.folder);
    std::vector<Node> outputs = row->build(call);
    call.check_all_read();
    const bool all_known = [&] {
      for (std::size_t i = 0; i < call.inputs(); ++i)
        if (call.has(i) && known_value(call[i]) == nullptr) return false;
      return true;
    }();
    if (all_known)
      for (Node& output : outputs) make_known(output);
    known_.forget();
    return outputs;
  }

  void make_known(Node& output) {
    if (output.is_empty() || known_value(output) != nullptr) return;
    if (auto value = known_.compute(output)) output = graph_.constant(std::move(*value));
  }

  // Counts the constants that the graph has got since it had `before` nodes.
  void count_constants(std::size_t before) {
    for (std::size_t id = before; id < graph_.size(); ++id) {
      const NodeRecord& record = graph_.record(static_cast<NodeId>(id));
      const Leaf* leaf = as_leaf(*record.op);
      if (leaf == nullptr || leaf->kind() != LeafKind::constant) continue;
      constant_bytes_ += record.types[0].bytes();
      if (constant_bytes_ > most_constants_)
        throw UserError(fmt::format(
            "the constants that are computed up to here have more than {} bytes; store them in the file, "
            "or make them smaller",
            most_constants_));
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
      if (!values_.emplace(node.outputs[i], outputs[i]).second)
        throw UserError(fmt::format("there is a value '{}' before it; each value needs a name of its own",
                                    node.outputs[i]));
    }
  }

  Node find(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end())
      throw UserError(fmt::format("the value '{}' is not made by any node before", name));
    return found->second;
  }

  Graph& graph_;
  const GraphProto& proto_;
  NamedNodes values_;
  const FileFacts& facts_;
  KnownValues known_;
  std::int64_t constant_bytes_ = 0;  // of constants that were computed
  std::int64_t most_constants_ = 0;
};

}  // namespace

void check_ops(const GraphProto& graph, const FileFacts& facts) {
  std::map<std::string, std::vector<std::string>> missing;
  collect_missing(graph, facts, missing);
  if (missing.empty()) return;
  std::vector<std::string> lines;
  for (const auto& [op, nodes] : missing)
    lines.push_back(
        fmt::format("{} ({} {})", op, nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", ")));
  throw UserError(fmt::format("{}: these ops are not supported: {}; replace them before the export",
                              facts.file, fmt::join(lines, "; ")));
}

std::vector<Node> build_graph(Graph& graph, const GraphProto& proto, NamedNodes values,
                              const FileFacts& facts, const BuildLimits& limits) {
  return GraphBuilder(graph, proto, std::move(values), facts, limits).build();
}

}  // namespace plexaura::onnx
