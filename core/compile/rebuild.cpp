#include "core/compile/rebuild.h"

#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/graph/uses.h"

namespace plexaura {

PassGraph rebuild(const Graph& source, std::span<const Value> roots, const std::function<bool(NodeId)>& keep,
                  const Replace& replace, bool updates) {
  PassGraph result{std::make_unique<Graph>(source.mode()), {}};
  std::vector<std::vector<Value>> outputs_of(source.size());
  const auto mapped = [&](Value value) { return outputs_of[value.node][value.output]; };
  for (NodeId id = 0; id < source.size(); ++id) {
    if (!keep(id)) continue;
    const NodeRecord& record = source.record(id);
    std::vector<Value> inputs;
    for (const Value input : record.inputs) inputs.push_back(mapped(input));
    auto replacement = replace(*result.graph, id, inputs);
    outputs_of[id] = replacement ? std::move(*replacement)
                                 : append_with_origin(*result.graph, record.op, inputs, record.origin);
  }
  for (const Value root : roots) result.roots.push_back(mapped(root));
  if (!updates) return result;
  for (const Update& update : source.updates())
    result.graph->update(Node(*result.graph, mapped(update.buffer)),
                         Node(*result.graph, mapped(update.next)));
  return result;
}

namespace {

class Repetition {
 public:
  Repetition(const PassGraph& from, std::vector<Repeat> repeats) : from_(from), repeats_(std::move(repeats)) {
    copies_.resize(repeats_.size());
    for (std::size_t i = 0; i < repeats_.size(); ++i) {
      repeated_.insert(repeats_[i].nodes.begin(), repeats_[i].nodes.end());
      for (const NodeId reader : repeats_[i].readers) repeat_of_.emplace(reader, i);
    }
  }

  PassGraph run() {
    const auto all = [](NodeId) { return true; };
    const auto replace = [&](Graph& target, NodeId id, const std::vector<Value>& inputs) {
      return replaced(target, id, inputs);
    };
    const PassGraph whole = rebuild(*from_.graph, from_.roots, all, replace);
    return prune(*whole.graph, whole.roots);
  }

 private:
  std::optional<std::vector<Value>> replaced(Graph& target, NodeId id, const std::vector<Value>& inputs) {
    if (repeated_.contains(id)) inputs_of_repeated_.emplace(id, inputs);
    const auto found = repeat_of_.find(id);
    if (found == repeat_of_.end()) return std::nullopt;
    return append_with(target, id, inputs, copies_of(target, found->second));
  }

  // Maps values of the source to those of the copied nodes in the target.
  using Copies = std::map<Value, Value>;

  const Copies& copies_of(Graph& target, std::size_t repeat) {
    Copies& copies = copies_[repeat];
    if (!copies.empty()) return copies;
    for (const NodeId node : repeats_[repeat].nodes) {
      const auto inputs = inputs_of_repeated_.find(node);
      if (inputs == inputs_of_repeated_.end())
        throw InternalError(fmt::format("a node is to read a copy of node {}, which comes after it", node));
      const std::vector<Value> outputs = append_with(target, node, inputs->second, copies);
      for (std::uint32_t i = 0; i < outputs.size(); ++i) copies.emplace(Value{node, i}, outputs[i]);
    }
    return copies;
  }

  // Appends a node of the source, which reads copies where there are any, and otherwise `inputs`.
  std::vector<Value> append_with(Graph& target, NodeId id, std::vector<Value> inputs, const Copies& copies) {
    const NodeRecord& record = from_.graph->record(id);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const auto copy = copies.find(record.inputs[i]); copy != copies.end()) inputs[i] = copy->second;
    return append_with_origin(target, record.op, inputs, record.origin);
  }

  const PassGraph& from_;
  std::vector<Repeat> repeats_;
  std::set<NodeId> repeated_;
  std::unordered_map<NodeId, std::size_t> repeat_of_;                  // of each node that reads copies
  std::unordered_map<NodeId, std::vector<Value>> inputs_of_repeated_;  // in the target
  std::vector<Copies> copies_;                                         // of each repeat
};

}  // namespace

std::optional<PassGraph> repeat(const PassGraph& from, const Backend& backend) {
  std::vector<Value> kept = from.roots;
  for (const Update& update : from.graph->updates()) kept.push_back(update.next);
  const Uses uses(*from.graph, kept);
  std::vector<Repeat> repeats;
  for (NodeId id = 0; id < from.graph->size(); ++id)
    for (Repeat& found : backend.repeats(*from.graph, id, uses)) repeats.push_back(std::move(found));
  if (repeats.empty()) return std::nullopt;
  return Repetition(from, std::move(repeats)).run();
}

}  // namespace plexaura
