#include "testing/run.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura::testing {

Runner::Runner(const Graph& graph, const std::vector<Node>& outputs, Backend& backend,
               const CompileOptions& options)
    : backend_(backend), outputs_(outputs.size()) {
  std::vector<ProgramOutput> wanted;
  for (const Node& output : outputs) wanted.push_back({output});
  program_ = compile(graph, wanted, backend, options);
  workspace_ = std::make_shared<Workspace>(backend, program_->arena_bytes);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Leaf* leaf = as_leaf(*graph.record(id).op);
    if (leaf == nullptr || leaf->kind() != LeafKind::input) continue;
    if (std::ranges::find(program_->feeds, leaf->label(), &Program::Feed::name) != program_->feeds.end()) {
      names_.push_back(leaf->label());
      places_.push_back(inputs_);
    }
    ++inputs_;
  }
  vm_ = std::make_unique<VM>(program_, backend, VmOptions{.workspace = workspace_});
}

std::vector<Tensor> Runner::operator()(const std::vector<Tensor>& inputs, const StepBlock& block) {
  if (inputs.size() != inputs_)
    throw UserError(
        fmt::format("the graph has {} inputs and was given {}; give each once", inputs_, inputs.size()));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < names_.size(); ++i) feeds.emplace_back(names_[i], inputs[places_[i]]);
  vm_->run(feeds, block);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < outputs_; ++i) results.push_back(vm_->output(i));
  return results;
}

}  // namespace plexaura::testing
