#include "core/vm/function.h"

#include <algorithm>
#include <fmt/format.h>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/compile/compile.h"
#include "core/compile/passes.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

constexpr const char* clone_for_threads =
    "a Function serves one thread at a time, and another thread is in it now; clone() one for each thread";

// Returns the name of the node, if it is an input of the graph.
const std::string* input_name(const Graph& graph, NodeId id) {
  const Leaf* leaf = as_leaf(*graph.record(id).op);
  return leaf != nullptr && leaf->kind() == LeafKind::input ? &leaf->label() : nullptr;
}

void check_graph(const Graph& graph, const Node& node, const char* role) {
  if (&node.graph() != &graph)
    throw UserError(fmt::format("Function: the {} {} belongs to another graph; give nodes of one graph", role,
                                name_of(node.graph(), node.id())));
}

std::vector<std::string> names_of(const Graph& graph, const std::vector<Node>& inputs) {
  std::vector<std::string> names;
  for (const Node& input : inputs) {
    check_graph(graph, input, "input");
    const std::string* name = input_name(graph, input.id());
    if (name == nullptr)
      throw UserError(
          fmt::format("Function: {} is no input of the graph; only what Graph::input() returned can be fed",
                      name_of(graph, input.id())));
    if (std::ranges::find(names, *name) != names.end())
      throw UserError(fmt::format("Function: the input '{}' is listed twice; list it once", *name));
    names.push_back(*name);
  }
  return names;
}

std::vector<Value> values_of_outputs(const Graph& graph, const std::vector<Node>& outputs) {
  if (outputs.empty()) throw UserError("Function: there is no output; list the nodes that it computes");
  std::vector<Value> values;
  for (const Node& output : outputs) {
    check_graph(graph, output, "output");
    values.push_back(output.value());
  }
  return values;
}

void check_all_listed(const Graph& graph, const std::vector<Value>& outputs,
                      const std::vector<std::string>& names) {
  for (const Value value : needed(graph, outputs)) {
    const std::string* name = input_name(graph, value.node);
    if (name != nullptr && std::ranges::find(names, *name) == names.end())
      throw UserError(fmt::format(
          "Function: the outputs need the input '{}', which is not among the inputs; list it there", *name));
  }
}

}  // namespace

// The graph and the names of the inputs from which the program is compiled.
struct Function::Source {
  PassGraph graph;
  std::vector<std::string> inputs;
};

Function::Function(const Graph& graph, std::vector<Node> inputs, std::vector<Node> outputs, Backend& backend,
                   ParameterStore* store)
    : backend_(backend), store_(store == nullptr ? std::nullopt : std::optional(store->share())) {
  const std::vector<Value> roots = values_of_outputs(graph, outputs);
  std::vector<std::string> names = names_of(graph, inputs);
  check_all_listed(graph, roots, names);
  source_ = std::make_shared<const Source>(copy(graph, roots), std::move(names));
  compile_source();
}

Function::Function(std::shared_ptr<const Source> source, const BackendUse& backend,
                   std::optional<ParameterStore> store)
    : source_(std::move(source)), backend_(backend), store_(std::move(store)) {}

Function Function::clone() const {
  if (source_ == nullptr) throw UserError("a Function was cloned after it was moved; clone the new one");
  Function other(source_, backend_, store_ ? std::optional(store_->share()) : std::nullopt);
  other.program_ = program_;
  if (store_ && store_->placed_times() != placed_times_)
    other.compile_source();
  else
    other.start();
  return other;
}

void Function::compile_source() {
  std::vector<ProgramOutput> outputs;
  for (const Value root : source_->graph.roots)
    outputs.push_back({.node = Node(*source_->graph.graph, root)});
  program_ = compile(*source_->graph.graph, outputs, backend_.get(),
                     {.placement = store_ ? &store_->placement() : nullptr});
  start();
}

void Function::start() {
  vm_ = std::make_unique<VM>(program_, backend_.get(), VmOptions{.store = store()});
  placed_times_ = store_ ? store_->placed_times() : 0;
}

std::vector<Tensor> Function::call(std::span<const Tensor* const> inputs) {
  const InUse use(busy_, "a Function", clone_for_threads);
  if (source_ == nullptr) throw UserError("a Function was called after it was moved; call the new one");
  if (inputs.size() != source_->inputs.size())
    throw UserError(fmt::format("a Function of {} inputs was called with {} tensors; give one for each input",
                                source_->inputs.size(), inputs.size()));
  Backend& backend = backend_.get();
  std::unique_lock turn(backend.turn(), std::defer_lock);
  if (!backend.info().host_memory) turn.lock();
  if (store_ && store_->placed_times() != placed_times_) compile_source();
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(source_->inputs[i], *inputs[i]);
  vm_->run(feeds);
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < source_->graph.roots.size(); ++i) values.push_back(vm_->output(i));
  return values;
}

Tensor evaluate(const Node& node, std::span<const Feed> feeds, Backend& backend, ParameterStore* store) {
  const std::lock_guard turn(backend.turn());
  const std::vector<ProgramOutput> outputs{{.node = node}};
  const auto program =
      compile(node.graph(), outputs, backend,
              {.placement = store == nullptr ? nullptr : &store->placement(), .apply_updates = false});
  VM vm(program, backend, {.store = store});
  vm.run(feeds);
  return vm.output();
}

Tensor evaluate(const Node& node, std::initializer_list<Feed> feeds, Backend& backend,
                ParameterStore* store) {
  return evaluate(node, std::span(feeds.begin(), feeds.size()), backend, store);
}

}  // namespace plexaura
