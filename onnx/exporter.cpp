#include "onnx/exporter.h"

#include <fmt/format.h>
#include <map>
#include <optional>
#include <system_error>

#include "onnx/export/export_table.h"
#include "onnx/export/unroll.h"

#include "core/base/error.h"
#include "core/base/fnv.h"
#include "training/files/file.h"

namespace plexaura::onnx {

namespace {

class GraphExporter {
 public:
  GraphExporter(const PassGraph& from, std::span<const ExportedOutput> outputs, const ParameterStore& store)
      : graph_(*from.graph), roots_(from.roots), outputs_(outputs), store_(store) {}

  std::string run(const ExternalFile* external) {
    reserve_names();
    for (NodeId id = 0; id < graph_.size(); ++id) add(id);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      to_.add_output(outputs_[i].name, names_.at(roots_[i]), graph_.type(roots_[i]));
    return to_.finish("plexaura", external);
  }

 private:
  // Inputs, parameters and outputs keep their names. All other values take names that are left.
  void reserve_names() {
    for (const ExportedOutput& output : outputs_)
      if (to_.unique(output.name) != output.name)
        throw UserError(
            fmt::format("two outputs have the name '{}'; each needs a name of its own", output.name));
    for (const LeafKind kind : {LeafKind::input, LeafKind::parameter, LeafKind::buffer}) {
      for (NodeId id = 0; id < graph_.size(); ++id) {
        const Leaf* leaf = as_leaf(*graph_.record(id).op);
        if (leaf == nullptr || leaf->kind() != kind) continue;
        names_[{id, 0}] = to_.unique(leaf->label());
        if (names_[{id, 0}] != leaf->label())
          throw UserError(
              fmt::format("'{}' is the name of several inputs, outputs or parameters; in ONNX each "
                          "needs a name of its own",
                          leaf->label()));
      }
    }
  }

  void add(NodeId id) {
    const NodeRecord& record = graph_.record(id);
    if (const Leaf* leaf = as_leaf(*record.op)) return add_leaf(id, *leaf);
    const ExportRow* row = find_export_row(record.op->name());
    if (row == nullptr) return add_missing(id, std::string(record.op->name()));
    try {
      ExportCall call(graph_, record, names_, name_of_node(id), to_);
      const std::vector<std::string> outputs = row->write(call, *row);
      for (std::uint32_t i = 0; i < record.types.size(); ++i)
        names_[{id, i}] = i < outputs.size() ? outputs[i] : missing_output(id, i);
    } catch (const NoCounterpart& error) {
      add_missing(id, error.what());
    }
  }

  void add_leaf(NodeId id, const Leaf& leaf) {
    switch (leaf.kind()) {
      case LeafKind::input:
        return to_.add_input(names_.at({id, 0}), leaf.type());
      case LeafKind::parameter:
      case LeafKind::buffer:
        return to_.add_initialiser(names_.at({id, 0}), value_of(leaf));
      case LeafKind::constant:
        names_[{id, 0}] = to_.constant(*leaf.value());
        return;
      default:
        add_missing(id, std::string(leaf.name()));
    }
  }

  Tensor value_of(const Leaf& leaf) const {
    Tensor value = store_.read(leaf.label());
    return value.dtype() == leaf.type().dtype ? value : value.cast(leaf.type().dtype);
  }

  std::string name_of_node(NodeId id) const {
    const NodeRecord& record = graph_.record(id);
    const std::string own = fmt::format("{}_{}", record.op->name(), id);
    return record.origin.scope.empty() ? own : fmt::format("{}/{}", record.origin.scope, own);
  }

  void add_missing(NodeId id, const std::string& op) {
    const NodeRecord& record = graph_.record(id);
    std::vector<std::string> inputs;
    for (const Value input : record.inputs) inputs.push_back(names_.at(input));
    const auto outputs =
        to_.add_missing(name_of_node(id), {op, to_string(record.origin)}, inputs, record.types.size());
    for (std::uint32_t i = 0; i < outputs.size(); ++i) names_[{id, i}] = outputs[i];
  }

  // Returns a name for an output that only gradients read, such as the places of the largest elements. Exporting fails
  // only if a node of the file needs the output.
  std::string missing_output(NodeId id, std::uint32_t output) {
    const NodeRecord& record = graph_.record(id);
    const std::string op = fmt::format("output {} of {}", output, record.op->name());
    return to_.add_missing(name_of_node(id), {op, to_string(record.origin)}, {}, 1)[0];
  }

  const Graph& graph_;
  const std::vector<Value>& roots_;
  std::span<const ExportedOutput> outputs_;
  const ParameterStore& store_;
  std::map<Value, std::string> names_;  // names in the file
  ModelWriter to_;
};

// The name contains a hash of the weights, so that a model never reads the weights of another export.
std::string name_of_weights(const std::filesystem::path& file, std::uint64_t hash) {
  return fmt::format("{}.{:016x}.data", file.filename().string(), hash);
}

// Removes the weights of earlier exports to the same file. `kept` is the name of the current ones.
void remove_former_weights(const std::filesystem::path& file, const std::string& kept) {
  const std::string prefix = file.filename().string() + ".";
  const std::size_t size = name_of_weights(file, 0).size();
  std::error_code ignored;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name == kept || name.size() != size || !name.starts_with(prefix) || !name.ends_with(".data"))
      continue;
    const std::string_view hash = std::string_view(name).substr(prefix.size(), 16);
    if (hash.find_first_not_of("0123456789abcdef") == std::string_view::npos)
      std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace

std::string export_graph(std::span<const ExportedOutput> outputs, const ParameterStore& store,
                         const ExternalFile* external) {
  if (outputs.empty()) throw UserError("a model needs an output to be exported; pass one at least");
  const Graph& graph = outputs[0].node.graph();
  if (graph.mode() != Mode::inference)
    throw UserError(
        "the graph was made for training; export a graph of Mode::inference, which has no dropout and "
        "reads the running moments of batch norm");
  std::vector<Value> roots;
  for (const ExportedOutput& output : outputs) {
    if (&output.node.graph() != &graph)
      throw UserError(
          fmt::format("the output '{}' belongs to another graph than '{}'; export the outputs of one graph",
                      output.name, outputs[0].name));
    roots.push_back(output.node.value());
  }
  const PassGraph flat = unroll(graph, roots);
  return GraphExporter(flat, outputs, store).run(external);
}

void export_to(const std::filesystem::path& file, std::span<const ExportedOutput> outputs,
               const ParameterStore& store, WeightsPlace weights) {
  write_model_to(file, weights,
                 [&](const ExternalFile& external) { return export_graph(outputs, store, &external); });
}

void write_model_to(const std::filesystem::path& file, WeightsPlace weights,
                    const std::function<std::string(const ExternalFile&)>& make_bytes) {
  const bool beside = weights == WeightsPlace::beside;
  std::optional<std::uint64_t> hash;
  const auto add_to_hash = [&](std::string_view bytes) { hash = fnv(bytes, hash.value_or(fnv_start)); };
  std::string model = make_bytes({name_of_weights(file, 0), add_to_hash, beside});
  std::string location;
  if (hash) {
    location = name_of_weights(file, *hash);
    AtomicFile data(file.parent_path() / location);
    model = make_bytes({location, [&](std::string_view bytes) { data.write(bytes); }, beside});
    data.commit();
  }
  AtomicFile written(file);
  written.write(model);
  written.commit();
  remove_former_weights(file, location);
}

}  // namespace plexaura::onnx
