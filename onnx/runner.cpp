#include "onnx/runner.h"

#include <algorithm>

#include "onnx/ops/call.h"

#include "core/compile/compile.h"
#include "core/inference/fold_batch_norms.h"

namespace plexaura::onnx {

Runner::Runner(const FileModel& model, ParameterStore& store, Backend& backend)
    : model_(model), store_(store.share()), backend_(backend) {}

bool Runner::fits(const Compiled& compiled, const std::map<std::string, Tensor>& inputs) {
  const auto has_type = [&](const auto& input) {
    const auto found = compiled.types.find(input.first);
    return found != compiled.types.end() && found->second == input.second.type();
  };
  const auto has_value = [&](const auto& value) { return inputs.at(value.first) == value.second; };
  return inputs.size() == compiled.types.size() && std::ranges::all_of(inputs, has_type) &&
         std::ranges::all_of(compiled.values, has_value);
}

std::vector<Node> Runner::build(Graph& graph, const std::map<std::string, Tensor>& inputs) const {
  std::map<std::string, Node, std::less<>> nodes;
  for (const auto& [name, tensor] : inputs)
    nodes[name] = value_inputs_.contains(name) ? graph.constant(tensor) : graph.input(name, tensor.type());
  return model_(graph, nodes);
}

void Runner::compile(const std::map<std::string, Tensor>& inputs) {
  Graph graph(Mode::inference);
  const std::vector<Node> results = build(graph, inputs);
  Compiled made;
  std::vector<ProgramOutput> outputs;
  std::vector<Value> roots;
  for (const Node& result : results) roots.push_back(result.value());
  const PassGraph folded = fold_batch_norms(graph, roots);
  for (const Value root : folded.roots) outputs.push_back({.node = Node(*folded.graph, root)});
  for (const Value value : needed(*folded.graph, folded.roots)) {
    const Leaf* leaf = as_leaf(*folded.graph->record(value.node).op);
    if (leaf != nullptr && leaf->kind() == LeafKind::input) made.fed.push_back(leaf->label());
  }
  for (const auto& [name, tensor] : inputs) {
    made.types[name] = tensor.type();
    if (value_inputs_.contains(name)) made.values[name] = tensor;
  }
  made.outputs = outputs.size();
  made.vm =
      std::make_unique<VM>(plexaura::compile(*folded.graph, outputs, backend_,
                                             {.placement = &store_.placement(), .apply_updates = false}),
                           backend_, VmOptions{.store = &store_});
  compiled_.push_front(std::move(made));
  if (compiled_.size() > kept_programs) compiled_.pop_back();
}

Runner::Compiled& Runner::compiled_for(const std::map<std::string, Tensor>& inputs) {
  const auto found = std::ranges::find_if(compiled_, [&](const Compiled& one) { return fits(one, inputs); });
  if (found != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, found);
    return compiled_.front();
  }
  for (;;) {
    try {
      compile(inputs);
      return compiled_.front();
    } catch (const UnknownValue& error) {
      const std::size_t before = value_inputs_.size();
      for (const std::string& name : model_.inputs_of(error.name())) value_inputs_.insert(name);
      if (value_inputs_.size() == before) throw;
    }
  }
}

std::vector<Tensor> Runner::operator()(const std::map<std::string, Tensor>& inputs) {
  Compiled& compiled = compiled_for(inputs);
  std::vector<Feed> feeds;
  for (const std::string& name : compiled.fed) feeds.emplace_back(name, inputs.at(name));
  compiled.vm->run(feeds);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < compiled.outputs; ++i) outputs.push_back(compiled.vm->output(i));
  return outputs;
}

}  // namespace plexaura::onnx
