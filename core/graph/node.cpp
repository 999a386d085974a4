#include "core/graph/node.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "core/base/error.h"
#include "core/graph/graph.h"
#include "core/tensor/dispatch.h"

namespace plexaura {

namespace {

// Throws UserError for a wrong number. A number that is combined with integers must be an integer in their
// range: it is never rounded. It must also be below 2^53, since an Operand holds it as a double, which rounds
// larger integers.
void check_whole(double number, const Node& like, std::source_location where) {
  dispatch(like.dtype(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>) {
      using Limits = std::numeric_limits<T>;
      const bool in_range =
          number >= static_cast<double>(Limits::lowest()) && number < std::ldexp(1.0, Limits::digits);
      if (in_range && std::abs(number) >= 0x1p53)
        throw UserError(
            fmt::format("{}: {} combined with {}: a number in an expression is exact below 2^53 only; write "
                        "graph.constant(Tensor::scalar<std::int64_t>(...)) in its place",
                        to_string(like.graph().origin_of(where)), number, to_string(like.type())));
      if (!in_range || number != std::trunc(number))
        throw UserError(fmt::format(
            "{}: {} combined with {}: a number takes the type of the other operand, and {} holds whole "
            "numbers from {} to {}; write one of these, or cast() the node",
            to_string(like.graph().origin_of(where)), number, to_string(like.type()), name_of(like.dtype()),
            +Limits::lowest(), +Limits::max()));
    }
  });
}

// Throws UserError if a finite number would become infinite in the node's dtype.
void check_finite(double number, const Tensor& held, const Node& like, std::source_location where) {
  if (!std::isfinite(number) || std::isfinite(held.to_doubles()[0])) return;
  throw UserError(fmt::format(
      "{}: {} combined with {}: a number takes the type of the other operand, and this one is beyond the "
      "largest number of {}; cast() the node to a wider type, or write infinity",
      to_string(like.graph().origin_of(where)), number, to_string(like.type()), name_of(like.dtype())));
}

}  // namespace

Node::Node(Graph& graph, Value value)
    : life_(&graph.life()), generation_(life_->generation()), value_(value) {}

Graph& Node::graph() const {
  if (life_ == nullptr)
    throw UserError("an empty Node was used as a value; every Node comes from a graph's leaf or an op");
  Graph* graph = life_->graph_of(generation_);
  if (graph == nullptr)
    throw UserError(fmt::format(
        "output {} of node %{} was used after its graph was destroyed; keep the Graph as long as its "
        "nodes are used",
        value_.output, value_.node));
  return *graph;
}

const TensorType& Node::type() const { return graph().type(value_); }

Node Operand::node() const {
  if (const Node* node = std::get_if<Node>(&content_)) return *node;
  throw UserError(fmt::format("{}: a number was given where a node is needed; write graph.constant(...)",
                              to_string(Origin::at(where_))));
}

Node Operand::node_like(const Node& like) const {
  const double* number = std::get_if<double>(&content_);
  if (number == nullptr) return node();
  if (!is_floating(like.dtype())) check_whole(*number, like, where_);
  Tensor held = Tensor::scalar(*number).cast(like.dtype());
  check_finite(*number, held, like, where_);
  return like.graph().constant(std::move(held), where_);
}

std::vector<Node> apply_all(std::shared_ptr<const Op> op, std::span<const Operand> operands) {
  const auto anchor =
      std::ranges::find_if(operands, [](const Operand& operand) { return !operand.is_number(); });
  if (anchor == operands.end())
    throw UserError(fmt::format("{} of numbers only: at least one operand must be a node", op->name()));
  const Node like = anchor->node();
  std::vector<Node> inputs;
  for (const Operand& operand : operands) inputs.push_back(operand.node_like(like));
  return like.graph().append(std::move(op), inputs, operands[0].where());
}

Node apply(std::shared_ptr<const Op> op, std::initializer_list<Operand> operands) {
  return apply_all(std::move(op), std::span(operands.begin(), operands.size()))[0];
}

}  // namespace plexaura
