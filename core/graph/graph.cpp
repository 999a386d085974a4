#include "core/graph/graph.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/fnv.h"

namespace plexaura {

namespace {

std::string call_text(const Op& op, std::span<const TensorType> types) {
  std::string arguments;
  for (const TensorType& type : types) arguments += (arguments.empty() ? "" : ", ") + to_string(type);
  const std::string options = to_string(op.description());
  return fmt::format("{}({}){}", op.name(), arguments,
                     options.empty() ? "" : fmt::format(" {{{}}}", options));
}

bool is_same_line(std::source_location a, std::source_location b) {
  return a.line() == b.line() && std::string_view(a.file_name()) == b.file_name();
}

}  // namespace

Node Graph::input(std::string name, TensorType type, Where where) {
  if (named_.contains(name))
    throw UserError(fmt::format("{}: there is already a leaf named '{}'; give each input a name of its own",
                                to_string(origin_of(where)), name));
  return named_leaf(LeafKind::input, std::move(name), std::move(type), where);
}

Node Graph::parameter(std::string name, TensorType type, Where where) {
  return named_leaf(LeafKind::parameter, std::move(name), std::move(type), where);
}

Node Graph::buffer(std::string name, TensorType type, Where where) {
  return named_leaf(LeafKind::buffer, std::move(name), std::move(type), where);
}

Node Graph::constant(Tensor value, Where where) {
  return leaf(Leaf(std::make_shared<const Tensor>(std::move(value))), where);
}

Node Graph::step_scalar(StepScalar scalar, DType dtype, Where where) {
  const bool fits = scalar == StepScalar::random ? dtype == DType::int64
                                                 : dtype == DType::float64 || dtype == DType::float32;
  if (!fits)
    throw UserError(
        fmt::format("{}: the step scalar '{}' cannot be {}: 'random' is int64, all others are float32 or "
                    "float64; use that",
                    to_string(origin_of(where)), name_of(scalar), name_of(dtype)));
  return leaf(Leaf(scalar, dtype), where);
}

Node Graph::arena_slice(ArenaSlice slice, DType dtype, Where where) {
  return leaf(Leaf(slice, dtype), where);
}

Node Graph::operand(std::size_t number, TensorType type, Where where) {
  return leaf(Leaf(number, std::move(type)), where);
}

Node Graph::named_leaf(LeafKind kind, std::string name, TensorType type, Where where) {
  if (const auto found = named_.find(name); found != named_.end()) {
    const auto& existing = op_cast<Leaf>(*records_[found->second].op);
    if (existing.kind() != kind || existing.type() != type)
      throw UserError(
          fmt::format("{}: '{}' is {} {} of {} already and was requested as {}; use the same kind and type, "
                      "or another name",
                      to_string(origin_of(where)), name, existing.kind() == LeafKind::input ? "an" : "a",
                      existing.name(), to_string(existing.type()), to_string(type)));
    return Node(*this, {found->second, 0});
  }
  const Node node = leaf(Leaf(kind, name, std::move(type)), where);
  named_.emplace(std::move(name), node.id());
  return node;
}

Node Graph::leaf(Leaf leaf, Where where) {
  return append(std::make_shared<Leaf>(std::move(leaf)), {}, where)[0];
}

void Graph::update(Node buffer, Node next, Where where) {
  if (&buffer.graph() != this || &next.graph() != this)
    throw UserError(
        fmt::format("{}: an operand of update belongs to another graph; nodes of two graphs cannot be mixed",
                    to_string(origin_of(where))));
  const auto fail = [&](std::string_view rule) {
    throw UserError(fmt::format("{}: update({}, {}): {}", to_string(origin_of(where)),
                                to_string(buffer.type()), to_string(next.type()), rule));
  };
  const Leaf* leaf = as_leaf(*record(buffer.id()).op);
  if (leaf == nullptr || (leaf->kind() != LeafKind::buffer && leaf->kind() != LeafKind::arena_slice))
    fail("only a buffer can be updated; a parameter changes through its gradient");
  if (buffer.type() != next.type()) fail("the next value must have the buffer's type; cast or reshape it");
  if (std::ranges::any_of(updates_, [&](const Update& update) { return update.buffer == buffer.value(); }))
    fail("the buffer has an update already; a buffer has one next value");
  updates_.push_back({buffer.value(), next.value()});
}

std::vector<Node> Graph::append(std::shared_ptr<const Op> op, std::span<const Node> inputs, Where where) {
  NodeRecord record{std::move(op), {}, {}, origin_of(where)};
  std::vector<TensorType> types;
  for (const Node& input : inputs) {
    if (&input.graph() != this)
      throw UserError(
          fmt::format("{}: an operand of {} belongs to another graph; nodes of two graphs cannot be mixed",
                      to_string(record.origin), record.op->name()));
    record.inputs.push_back(input.value());
    types.push_back(input.type());
  }
  const auto refused = [&](const std::exception& rule) {
    return UserError(
        fmt::format("{}: {}: {}", to_string(record.origin), call_text(*record.op, types), rule.what()));
  };
  try {
    record.types = record.op->infer(types);
  } catch (const std::invalid_argument& rule) {
    throw refused(rule);
  } catch (const UserError& rule) {  // the shape rule has refused the inputs
    throw refused(rule);
  }
  records_.push_back(std::move(record));
  const auto id = static_cast<NodeId>(records_.size() - 1);
  std::vector<Node> outputs;
  for (std::uint32_t output = 0; output < records_[id].types.size(); ++output)
    outputs.emplace_back(*this, Value{id, output});
  return outputs;
}

Origin Graph::origin_of(Where where) const {
  Origin origin = origin_ ? *origin_ : Origin::at(where);
  if (!origin_ && caller_ && !is_same_line(*caller_, where)) origin.caller = *caller_;
  if (origin.scope.empty()) origin.scope = scope_;
  return origin;
}

std::int64_t Graph::next_stream() {
  const std::int64_t ordinal = streams_[scope_]++;
  return static_cast<std::int64_t>(fnv(fmt::format("{}#{}", scope_, ordinal)));
}

Graph::Scope::Scope(Graph& graph, std::string_view name) : graph_(graph), outer_(graph.scope_) {
  if (!graph.scope_.empty() && !name.empty()) graph.scope_ += '.';
  graph.scope_ += name;
}

Graph::Scope::Scope(Graph& graph, Absolute, std::string_view path) : graph_(graph), outer_(graph.scope_) {
  if (!path.empty()) graph.scope_ = path;
}

Graph::Scope::~Scope() { graph_.scope_ = std::move(outer_); }

Graph::WithOrigin::WithOrigin(Graph& graph, Origin origin) : graph_(graph), outer_(std::move(graph.origin_)) {
  graph.origin_ = std::move(origin);
}

Graph::WithOrigin::~WithOrigin() { graph_.origin_ = std::move(outer_); }

Graph::Called::Called(Graph& graph, Where where) : graph_(graph), outer_(graph.caller_) {
  if (!outer_) graph.caller_ = where;
}

Graph::Called::~Called() { graph_.caller_ = outer_; }

Graph::Evaluating::Evaluating(Graph& graph) : graph_(graph), outer_(graph.mode_) {
  graph.mode_ = Mode::inference;
}

Graph::Evaluating::~Evaluating() { graph_.mode_ = outer_; }

}  // namespace plexaura
