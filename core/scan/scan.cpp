#include "core/scan/scan.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "core/ops/binary.h"
#include "core/scan/scan_op.h"

namespace plexaura {

namespace {

using Where = std::source_location;

[[noreturn]] void refuse(const Graph& graph, Where where, const std::string& rule) {
  throw UserError(fmt::format("{}: scan: {}", to_string(graph.origin_of(where)), rule));
}

Graph& graph_of(const std::vector<Node>& xs, const std::vector<Node>& carries, Where where) {
  if (xs.empty() && carries.empty())
    throw UserError(fmt::format("{}: scan: there are neither xs nor carries; pass one at least",
                                to_string(Origin::at(where))));
  Graph& graph = (xs.empty() ? carries : xs)[0].graph();
  for (const std::vector<Node>* nodes : {&xs, &carries})
    for (const Node& node : *nodes)
      if (&node.graph() != &graph) refuse(graph, where, "its operands belong to different graphs");
  return graph;
}

std::int64_t steps_of(const Graph& graph, const std::vector<Node>& xs, const ScanOptions& options,
                      Where where) {
  std::optional<std::int64_t> steps = options.steps;
  if (steps && *steps < 0) refuse(graph, where, fmt::format("steps is {}; it must not be negative", *steps));
  for (const Node& x : xs) {
    if (x.shape().rank() == 0)
      refuse(graph, where, "one of the xs is a scalar; each needs an axis 0, over which the scan goes");
    if (steps && *steps != x.shape()[0])
      refuse(graph, where,
             fmt::format("one of the xs is {}, and there are {} steps; axis 0 of each must have that extent",
                         to_string(x.type()), *steps));
    steps = x.shape()[0];
  }
  if (!steps) refuse(graph, where, "there are no xs that say how many steps it has; set the option steps");
  return *steps;
}

bool is_random_scalar(const Graph& graph, Value value) {
  const Leaf* leaf = as_leaf(*graph.record(value.node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::step_scalar && leaf->scalar() == StepScalar::random;
}

bool is_small_constant(const Graph& graph, Value value) {
  const Leaf* leaf = as_leaf(*graph.record(value.node).op);
  return leaf != nullptr && leaf->kind() == LeafKind::constant && leaf->value()->elements() == 1;
}

// The nodes that a call of the scan's body function has appended to the graph.
class Trace {
 public:
  Trace(Graph& graph, bool same_draws, Where where)
      : graph_(graph), same_draws_(same_draws), where_(where), updates_(graph.updates().size()) {}

  std::vector<Node> add_operands(const std::vector<TensorType>& types) {
    std::vector<Node> nodes;
    for (const TensorType& type : types) {
      nodes.push_back(graph_.operand(given_.size(), type, where_));
      given_.push_back(nodes.back().value());
    }
    return nodes;
  }

  void call(const std::function<void()>& body) {
    begin_ = graph_.size();
    body();
    check();
    find_varying();
  }

  // Finds the values that the outputs need and that are the same in each step, and the random step scalars
  // that they need.
  void find_captured(const std::vector<Value>& outputs) {
    std::vector<bool> needed(graph_.size(), false);
    std::set<Value> captured;
    const auto need = [&](Value value) {
      if (std::ranges::find(given_, value) != given_.end()) return;
      if (varies(value.node))
        needed[value.node] = true;
      else if (!is_small_constant(graph_, value))
        captured.insert(value);
    };
    for (const Value output : outputs) need(output);
    for (auto id = static_cast<NodeId>(graph_.size()); id-- > begin_;)
      if (needed[id])
        for (const Value input : graph_.record(id).inputs) need(input);
    for (const Value value : captured) (draws_anew(value) ? randoms_ : captured_).push_back(value);
  }

  const std::vector<Value>& given() const { return given_; }
  const std::vector<Value>& randoms() const { return randoms_; }    // step scalars that the body needs
  const std::vector<Value>& captured() const { return captured_; }  // values that are the same in each step

 private:
  void check() const {
    if (graph_.updates().size() != updates_)
      refuse(graph_, where_,
             "the body updates a buffer, and a scan has one next value for all its steps; return the value "
             "from the body "
             "and update the buffer after the scan");
    for (auto id = static_cast<NodeId>(begin_); id < graph_.size(); ++id)
      if (graph_.record(id).op->traits().collective)
        refuse(graph_, where_,
               fmt::format("the body has {}, which sums over ranks; return its operand from the body and sum "
                           "after the scan",
                           name_of(graph_, id)));
  }

  // Marks the nodes that depend on an operand or draw random numbers.
  void find_varying() {
    varying_.assign(graph_.size(), false);
    for (const Value operand : given_) varying_[operand.node] = true;
    for (auto id = static_cast<NodeId>(begin_); id < graph_.size(); ++id)
      for (const Value input : graph_.record(id).inputs)
        if (varying_[input.node] || draws_anew(input)) varying_[id] = true;
  }

  bool varies(NodeId id) const { return varying_[id]; }
  bool draws_anew(Value value) const { return !same_draws_ && is_random_scalar(graph_, value); }

  Graph& graph_;
  bool same_draws_;
  Where where_;
  std::size_t updates_;
  std::size_t begin_ = 0;
  std::vector<bool> varying_;
  std::vector<Value> given_;
  std::vector<Value> randoms_;
  std::vector<Value> captured_;
};

// Returns the step scalars `random` of all steps, stacked. The seeds of the steps are far apart. The first
// step has the seed of the scan.
Node random_of_steps(const Node& random, std::int64_t steps) {
  constexpr std::uint64_t apart = 0x9E3779B97F4A7C15U;
  std::vector<std::int64_t> offsets;
  for (std::int64_t step = 0; step < steps; ++step)
    offsets.insert(offsets.end(),
                   {static_cast<std::int64_t>(static_cast<std::uint64_t>(step) * apart), 0, 0});
  return random + random.graph().constant(Tensor::of({steps, 3}, offsets));
}

void check_carries(const Graph& graph, const std::vector<Node>& carries, const std::vector<Node>& next,
                   Where where) {
  if (next.size() != carries.size())
    refuse(graph, where,
           fmt::format("the body returns {} carries and gets {}; it must return one for each", next.size(),
                       carries.size()));
  for (std::size_t i = 0; i < next.size(); ++i)
    if (next[i].type() != carries[i].type())
      refuse(
          graph, where,
          fmt::format(
              "carry {} is {} before a step and {} after it; a carry keeps its type, so cast or reshape it",
              i, to_string(carries[i].type()), to_string(next[i].type())));
}

void check_own(const Graph& graph, const ScanStep& step, Where where) {
  for (const std::vector<Node>* nodes : {&step.carries, &step.outputs})
    for (const Node& node : *nodes)
      if (&node.graph() != &graph) refuse(graph, where, "the body returns a node of another graph");
}

std::vector<Value> values_of(const std::vector<Node>& nodes) {
  std::vector<Value> values;
  for (const Node& node : nodes) values.push_back(node.value());
  return values;
}

template <class T>
void append_all(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

ScanStep scan(const std::vector<Node>& xs, const std::vector<Node>& carries, const ScanBody& body,
              ScanOptions options, std::source_location where) {
  Graph& graph = graph_of(xs, carries, where);
  ScanForm form{.steps = steps_of(graph, xs, options, where),
                .carries = carries.size(),
                .reverse = options.reverse,
                .recompute = options.recompute};
  Trace trace(graph, options.same_draws, where);
  std::vector<TensorType> types;
  for (const Node& carry : carries) types.push_back(carry.type());
  const std::vector<Node> given_carries = trace.add_operands(types);
  types.clear();
  for (const Node& x : xs) types.push_back(element_of(x.type()));
  const std::vector<Node> elements = trace.add_operands(types);
  ScanStep step;
  trace.call([&] { step = body(given_carries, elements); });
  check_own(graph, step, where);
  check_carries(graph, carries, step.carries, where);

  std::vector<Value> outputs = values_of(step.carries);
  append_all(outputs, values_of(step.outputs));
  append_all(outputs, values_of(given_carries));
  trace.find_captured(outputs);

  std::vector<Node> operands = carries;
  append_all(operands, xs);
  std::vector<Value> inner = trace.given();
  for (const Value random : trace.randoms()) {
    operands.push_back(random_of_steps(Node(graph, random), form.steps));
    inner.push_back(random);
  }
  form.stacked = operands.size() - form.carries;
  for (const Value value : trace.captured()) operands.emplace_back(graph, value);
  append_all(inner, trace.captured());
  const std::vector<Node> results =
      graph.append(make_scan(form, *extract(graph, outputs, inner)), operands, where);
  const auto end_of_carries = results.begin() + static_cast<std::ptrdiff_t>(form.carries);
  return {{results.begin(), end_of_carries},
          {end_of_carries, end_of_carries + static_cast<std::ptrdiff_t>(step.outputs.size())}};
}

}  // namespace plexaura
