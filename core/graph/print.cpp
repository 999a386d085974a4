#include "core/graph/print.h"

#include <fmt/format.h>
#include <map>
#include <vector>

#include "core/graph/subgraph.h"

namespace plexaura {

namespace {

std::string value_text(const Graph& graph, Value value) {
  const bool single = graph.record(value.node).types.size() == 1;
  return single ? fmt::format("%{}", value.node) : fmt::format("%{}.{}", value.node, value.output);
}

std::string types_text(const NodeRecord& record) {
  std::string text;
  for (const TensorType& type : record.types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

std::string node_line(const Graph& graph, NodeId id) {
  const NodeRecord& record = graph.record(id);
  std::string inputs;
  for (const Value input : record.inputs) inputs += (inputs.empty() ? "" : ", ") + value_text(graph, input);
  const std::string options = to_string(record.op->description());
  return fmt::format("%{} = {}({}){} : {}   # {}\n", id, record.op->name(), inputs,
                     options.empty() ? "" : fmt::format(" {{{}}}", options), types_text(record),
                     to_string(record.origin));
}

// Returns the text of an op's subgraphs: one line for each node, indented more than the line of the op.
std::string subgraph_lines(const Op& op) {
  std::string text;
  const Description description = op.description();
  for (const auto& [key, value] : description.fields()) {
    const auto* subgraph = std::get_if<std::shared_ptr<const Subgraph>>(&value);
    if (subgraph == nullptr) continue;
    text += fmt::format("    {}:\n    ", key);
    for (const char letter : to_text((*subgraph)->graph()))
      text += letter == '\n' ? "\n    " : std::string(1, letter);
    text.resize(text.size() - 4);
  }
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += letter;
  }
  return result;
}

std::string dot_node(const Graph& graph, NodeId id) {
  const NodeRecord& record = graph.record(id);
  const Leaf* leaf = as_leaf(*record.op);
  const std::string title =
      leaf != nullptr && !leaf->label().empty() ? leaf->label() : std::string(record.op->name());
  return fmt::format("n{} [label=\"{}\\n{}\"{}];\n", id, escaped(title), escaped(types_text(record)),
                     leaf != nullptr ? ", shape=box, style=filled, fillcolor=lightgrey" : "");
}

std::string dot_edges(const Graph& graph, NodeId id) {
  std::string text;
  for (const Value input : graph.record(id).inputs) {
    const NodeRecord& source = graph.record(input.node);
    const auto kept = source.types.size() - static_cast<std::size_t>(source.op->traits().saved_outputs);
    text += fmt::format("n{} -> n{}{};\n", input.node, id, input.output >= kept ? " [style=dashed]" : "");
  }
  return text;
}

// A tree of scopes. A node is printed inside the nested clusters of the parts of its path.
struct Cluster {
  std::map<std::string, Cluster> inner;
  std::vector<NodeId> nodes;
};

std::string dot_cluster(const Graph& graph, const Cluster& cluster, const std::string& path) {
  std::string text;
  for (const NodeId id : cluster.nodes) text += dot_node(graph, id);
  for (const auto& [name, inner] : cluster.inner)
    text += fmt::format("subgraph \"cluster_{0}{1}\" {{\nlabel=\"{1}\"; color=grey;\n{2}}}\n", path, name,
                        dot_cluster(graph, inner, path + name + "."));
  return text;
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::string text;
  for (NodeId id = 0; id < graph.size(); ++id)
    text += node_line(graph, id) + subgraph_lines(*graph.record(id).op);
  for (const Update& update : graph.updates())
    text += fmt::format("update({}, {})\n", value_text(graph, update.buffer), value_text(graph, update.next));
  return text;
}

std::string to_dot(const Graph& graph) {
  Cluster root;
  std::string edges;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Cluster* cluster = &root;
    std::string part;
    for (const char letter : graph.record(id).origin.scope + '.') {
      if (letter != '.')
        part += letter;
      else if (!part.empty())
        cluster = &cluster->inner[std::exchange(part, {})];
    }
    cluster->nodes.push_back(id);
    edges += dot_edges(graph, id);
  }
  for (const Update& update : graph.updates())
    edges += fmt::format("n{} -> n{} [style=dotted];\n", update.next.node, update.buffer.node);
  return fmt::format("digraph plexaura {{\nnode [fontname=\"sans-serif\", fontsize=10];\n{}{}}}\n",
                     dot_cluster(graph, root, ""), edges);
}

std::string name_of(const Graph& graph, NodeId id) {
  const NodeRecord& record = graph.record(id);
  return fmt::format("{} %{} of {}", record.op->name(), id, to_string(record.origin));
}

}  // namespace plexaura
