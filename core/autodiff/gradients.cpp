#include "core/autodiff/gradients.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <stdexcept>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/graph/uses.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"

namespace plexaura {

namespace {

// Returns true if the small shape broadcasts to the large one.
bool covers(const Shape& large, const Shape& small) {
  try {
    return broadcast(large, small) == large;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

bool is_saved(const Graph& graph, Value value) {
  const NodeRecord& producer = graph.record(value.node);
  const auto saved = static_cast<std::size_t>(producer.op->traits().saved_outputs);
  return value.output >= producer.types.size() - saved;
}

// Visits the nodes from the outputs back to the beginning of the graph. Adds up the cotangent of each value.
class BackwardPass {
 public:
  BackwardPass(std::span<const Node> outputs, std::span<const Node> wrt)
      : graph_(outputs[0].graph()), end_(std::ranges::max(outputs, {}, &Node::id).id() + 1) {
    mark_dependents(wrt);
  }

  // Returns true if the value depends on an entry of wrt.
  bool depends(const Node& value) const { return depends_[value.id()]; }

  void run(std::span<const Node> outputs, std::span<const Node> cotangents) {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!cotangents[i].is_empty()) add(outputs[i], cotangents[i]);
    for (NodeId id = end_; id-- > 0;)
      if (depends_[id]) visit(id);
  }

  Node cotangent(Value value) const {
    const auto found = cotangents_.find(value);
    return found == cotangents_.end() ? Node() : found->second;
  }

 private:
  // Marks every node whose value depends on an entry of wrt.
  void mark_dependents(std::span<const Node> wrt) {
    depends_.assign(graph_.size(), false);
    for (const Node& node : wrt) depends_[node.id()] = true;
    for (NodeId id = 0; id < end_; ++id)
      for (const Value input : graph_.record(id).inputs)
        if (carries_gradient(input)) depends_[id] = true;
  }

  bool carries_gradient(Value value) const {
    return depends_[value.node] && is_floating(graph_.type(value).dtype);
  }

  void visit(NodeId id) {
    const NodeRecord& record = graph_.record(id);
    std::vector<Node> outputs;
    std::vector<Node> grad_outputs;
    bool any = false;
    for (std::uint32_t output = 0; output < record.types.size(); ++output) {
      outputs.emplace_back(graph_, Value{id, output});
      grad_outputs.push_back(cotangent({id, output}));
      any = any || !grad_outputs.back().is_empty();
    }
    if (any && !record.inputs.empty()) push_to_inputs(id, outputs, grad_outputs);
  }

  void push_to_inputs(NodeId id, std::span<const Node> outputs, std::span<const Node> grad_outputs) {
    const NodeRecord& record = graph_.record(id);
    std::vector<Node> inputs;
    std::vector<bool> wanted;
    bool any_wanted = false;
    for (const Value input : record.inputs) {
      inputs.emplace_back(graph_, input);
      wanted.push_back(carries_gradient(input));
      any_wanted = any_wanted || wanted.back();
    }
    if (!any_wanted) return;
    Origin origin = record.origin;
    origin.is_gradient = true;
    const Graph::WithOrigin guard(graph_, origin);
    const std::vector<Node> grads = record.op->vjp({inputs, outputs, grad_outputs, wanted});
    if (grads.size() != inputs.size())
      throw InternalError(fmt::format("the vjp of {} returned {} gradients for {} inputs",
                                      name_of(graph_, id), grads.size(), inputs.size()));
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].is_empty() && !is_floating(inputs[i].dtype()))
        throw InternalError(
            fmt::format("the vjp of {} returned a gradient for input {}, which is {} and has none; "
                        "return an empty Node for it",
                        name_of(graph_, id), i, to_string(inputs[i].type())));
      if (!grads[i].is_empty() && wanted[i]) accumulate(inputs[i], grads[i], id);
    }
  }

  // Adds a gradient to the cotangent of a value. A saved output gets no cotangent. It is a function of its
  // op's inputs, and the gradients of the ops that read it already include its part.
  void accumulate(const Node& input, const Node& grad, NodeId from) {
    if (is_saved(graph_, input.value())) return;
    if (grad.dtype() != input.dtype())
      throw InternalError(fmt::format("the vjp of {} returned {} for an input of {}", name_of(graph_, from),
                                      to_string(grad.type()), to_string(input.type())));
    if (!covers(grad.shape(), input.shape()))
      throw InternalError(
          fmt::format("the vjp of {} returned {} for an input of {}, which does not broadcast to it",
                      name_of(graph_, from), to_string(grad.type()), to_string(input.type())));
    add(input, sum_to(grad, input.shape()));
  }

  void add(const Node& value, const Node& cotangent) {
    Node& slot = cotangents_[value.value()];
    slot = slot.is_empty() ? cotangent : slot + cotangent;
  }

  Graph& graph_;
  NodeId end_;
  std::vector<bool> depends_;
  std::map<Value, Node> cotangents_;
};

std::string named(const Node& node) { return name_of(node.graph(), node.id()); }

void check_wrt(std::string_view function, const Graph& graph, const Node& node) {
  const auto fail = [&](const char* rule) {
    throw UserError(fmt::format("{}({}): {}", function, named(node), rule));
  };
  if (&node.graph() != &graph) fail("it belongs to another graph than what is differentiated");
  if (!is_floating(node.dtype())) fail("integers and bools take no gradient; leave it out");
}

void check_output(const Node& output, const Node& cotangent, const Graph& graph) {
  const auto fail = [&](const std::string& rule) {
    throw UserError(fmt::format("vjp({}): {}", named(output), rule));
  };
  if (&output.graph() != &graph) fail("it belongs to another graph than the first output");
  if (!is_floating(output.dtype())) fail("an output must be floating; cast() it");
  if (is_saved(graph, output.value()))
    fail("the op saved this output for its own gradient, so it has none; leave it out");
  if (cotangent.is_empty()) return;
  if (&cotangent.graph() != &graph) fail("its cotangent belongs to another graph; make it in this one");
  if (cotangent.type() != output.type())
    fail(fmt::format("its cotangent is {}; it must be {} as the output is", to_string(cotangent.type()),
                     to_string(output.type())));
}

void check_loss(const Node& loss, const Node& seed) {
  const auto fail = [&](const char* rule) {
    throw UserError(fmt::format("gradients({}): {}", named(loss), rule));
  };
  if (loss.shape().rank() != 0) fail("the loss must be a scalar; sum() or mean() it first");
  if (!is_floating(loss.dtype())) fail("the loss must be floating; cast() it");
  if (!seed.is_empty() && (&seed.graph() != &loss.graph() || seed.type() != loss.type()))
    fail("the seed must be a scalar of the loss' dtype in the same graph; cast() it");
}

// Returns the nodes on all paths from `from` to the loss, without `from`, the last ones first.
std::vector<NodeId> nodes_on_paths(const Node& from, const Node& loss) {
  const Graph& graph = loss.graph();
  std::vector<bool> follows(graph.size(), false);
  const std::vector<bool> leads = nodes_needed(graph, std::array{loss.value()});
  follows[from.id()] = true;
  for (NodeId id = from.id() + 1; id <= loss.id(); ++id)
    for (const Value input : graph.record(id).inputs)
      if (follows[input.node]) follows[id] = true;
  std::vector<NodeId> found;
  for (NodeId id = loss.id(); id > from.id(); --id)
    if (follows[id] && leads[id]) found.push_back(id);
  return found;
}

UserError not_differentiable(const Node& loss, const Node& node, NodeId barrier) {
  const Graph& graph = loss.graph();
  // The gradients of relu and of other piecewise linear ops compare, and have no other path to their input.
  const NodeRecord& record = graph.record(barrier);
  const bool compares = record.types[0].dtype == DType::boolean && record.origin.is_gradient;
  return UserError(
      fmt::format("gradients({}): no gradient passes {} on the way to {}; leave that out, or use an "
                  "op that has a gradient{}",
                  named(loss), name_of(graph, barrier), named(node),
                  compares ? ", such as softplus instead of relu for a second derivative" : ""));
}

UserError does_not_depend(const Node& loss, const Node& node) {
  for (const NodeId id : nodes_on_paths(node, loss))
    if (!is_floating(loss.graph().record(id).types[0].dtype)) return not_differentiable(loss, node, id);
  return UserError(
      fmt::format("gradients({}): the loss does not depend on {}; leave it out", named(loss), named(node)));
}

// Returns an error that names the node where the gradient ends: the last node that has a gradient, since the
// nodes before it have none. If this node reads a saved output, the error names the op that saved it.
UserError gets_no_gradient(const Node& loss, const Node& node, const BackwardPass& pass) {
  NodeId barrier = loss.id();
  for (const NodeId id : nodes_on_paths(node, loss))
    if (!pass.cotangent({id, 0}).is_empty()) barrier = id;
  for (const Value input : loss.graph().record(barrier).inputs)
    if (is_saved(loss.graph(), input)) return not_differentiable(loss, node, input.node);
  return not_differentiable(loss, node, barrier);
}

Node one_like(const Node& loss) { return loss.graph().constant(Tensor::scalar(1.0).cast(loss.dtype())); }

std::vector<Node> cotangents_of(const BackwardPass& pass, std::span<const Node> values) {
  std::vector<Node> result;
  for (const Node& value : values) result.push_back(pass.cotangent(value.value()));
  return result;
}

}  // namespace

std::vector<Node> vjp(std::span<const Node> outputs, std::span<const Node> cotangents,
                      std::span<const Node> wrt) {
  if (outputs.empty()) throw UserError("vjp(): there is no output; pass one at least");
  if (cotangents.size() != outputs.size())
    throw UserError(
        fmt::format("vjp({}): {} cotangents for {} outputs; pass one for each, an empty Node for zero",
                    named(outputs[0]), cotangents.size(), outputs.size()));
  const Graph& graph = outputs[0].graph();
  for (std::size_t i = 0; i < outputs.size(); ++i) check_output(outputs[i], cotangents[i], graph);
  for (const Node& node : wrt) check_wrt("vjp", graph, node);
  BackwardPass pass(outputs, wrt);
  pass.run(outputs, cotangents);
  return cotangents_of(pass, wrt);
}

std::vector<Node> gradients_or_empty(Node loss, std::span<const Node> wrt, Node seed) {
  check_loss(loss, seed);
  for (const Node& node : wrt) check_wrt("gradients", loss.graph(), node);
  if (!BackwardPass({&loss, 1}, wrt).depends(loss)) return std::vector<Node>(wrt.size());
  if (seed.is_empty()) seed = one_like(loss);
  return vjp({&loss, 1}, {&seed, 1}, wrt);
}

std::vector<Node> gradients(Node loss, std::span<const Node> wrt, Node seed) {
  std::vector<Node> result = gradients_or_empty(loss, wrt, seed);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    if (!result[i].is_empty()) continue;
    BackwardPass pass({&loss, 1}, wrt.subspan(i, 1));
    if (!pass.depends(loss)) throw does_not_depend(loss, wrt[i]);
    const Node one = one_like(loss);
    pass.run({&loss, 1}, {&one, 1});
    throw gets_no_gradient(loss, wrt[i], pass);
  }
  return result;
}

std::vector<Node> vjp(std::initializer_list<Node> outputs, std::initializer_list<Node> cotangents,
                      std::initializer_list<Node> wrt) {
  return vjp(std::span(outputs.begin(), outputs.size()), std::span(cotangents.begin(), cotangents.size()),
             std::span(wrt.begin(), wrt.size()));
}

std::vector<Node> gradients(Node loss, std::initializer_list<Node> wrt, Node seed) {
  return gradients(loss, std::span(wrt.begin(), wrt.size()), seed);
}

}  // namespace plexaura
