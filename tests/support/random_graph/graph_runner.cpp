#include "tests/support/random_graph/graph_runner.h"

namespace plexaura::testing {

namespace {

std::vector<ProgramOutput> readable(const std::vector<Node>& nodes) {
  std::vector<ProgramOutput> outputs;
  for (const Node& node : nodes) outputs.push_back({.node = node});
  return outputs;
}

std::vector<ParameterSpec> parameters_of(const std::vector<SketchLeaf>& leaves) {
  std::vector<ParameterSpec> specs;
  for (const SketchLeaf& leaf : leaves)
    if (leaf.is_parameter)
      specs.push_back({leaf.name, leaf.type, ParameterRole::trainable, Initialiser::zeros()});
  return specs;
}

}  // namespace

GraphRunner::GraphRunner(const Graph& graph, const std::vector<SketchLeaf>& leaves,
                         const std::vector<Node>& outputs, Backend& backend, const CompileOptions& options)
    : leaves_(leaves),
      outputs_(outputs.size()),
      program_(compile(graph, readable(outputs), backend, options)),
      store_(parameters_of(leaves)) {
  store_.place(program_->placement, backend);
  vm_ = std::make_unique<VM>(program_, backend, VmOptions{.store = &store_});
}

std::vector<Tensor> GraphRunner::operator()(const std::vector<Tensor>& values) {
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    if (leaves_[i].is_parameter)
      store_.write(leaves_[i].name, values[i]);
    else
      feeds.emplace_back(leaves_[i].name, values[i]);
  }
  vm_->run(feeds, {.seed = 7});
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < outputs_; ++i) results.push_back(vm_->output(i));
  return results;
}

}  // namespace plexaura::testing
