#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <variant>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/shape.h"

namespace plexaura {

class Graph;
class GraphLife;
class Op;
struct Subscript;

using NodeId = std::uint32_t;

// A value of a graph: one output of one node. It does not say which graph that is.
struct Value {
  NodeId node = 0;
  std::uint32_t output = 0;
  auto operator<=>(const Value&) const = default;
};

// The user's handle of a value in a graph. It is small, cheap to copy, and valid as long as its graph lives.
// An empty Node belongs to no graph. Using an empty Node as a value, or a Node whose graph was destroyed,
// throws UserError.
class PLEXAURA_API Node {
 public:
  Node() = default;
  Node(Graph& graph, Value value);

  bool is_empty() const { return life_ == nullptr; }
  Graph& graph() const;
  Value value() const { return value_; }
  NodeId id() const { return value_.node; }
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }

  // Selects a part of the value: x[0], x[slice(1, 4)] or x[{slice(1, 4), -1}]. See core/ops/subscript.h.
  Node operator[](const Subscript& at) const;

  // Deleted to prevent mistakes: eq() and ne() of core/ops/binary.h compare two values element by element,
  // and make a node of bool.
  bool operator==(const Node&) const = delete;
  bool operator!=(const Node&) const = delete;
  // True if both nodes are handles of the same value, or both are empty.
  friend bool same_value(const Node& a, const Node& b) {
    return a.life_ == b.life_ && a.generation_ == b.generation_ && a.value_ == b.value_;
  }

 private:
  const GraphLife* life_ = nullptr;
  std::uint32_t generation_ = 0;  // the GraphLife's generation that belongs to the graph
  Value value_;
};

// A number that is written in an expression. bool does not count as one.
template <class T>
concept WrittenNumber = !std::same_as<T, bool> && (std::integral<T> || std::floating_point<T>);
template <class T>
concept WrittenInteger = WrittenNumber<T> && std::integral<T>;

// An argument of operators and builder functions: a node or a number, together with its source line. The
// conversion to Operand at the call records the line, so that an error can name the user's line. A number
// takes the dtype of the other operand, which must be able to hold it: for an integer dtype it must be whole
// and its magnitude below 2^53, up to which a double is exact; for a floating dtype it must be infinite, NaN or
// within the dtype's range. A layer passes its Operand on to the builders, so that errors name the line of the
// layer's caller.
class PLEXAURA_API Operand {
 public:
  Operand(Node node, std::source_location where = std::source_location::current())
      : content_(node), where_(where) {}
  template <WrittenNumber Number>
  Operand(Number number, std::source_location where = std::source_location::current())
      : content_(static_cast<double>(number)), where_(where) {}
  template <std::same_as<bool> Bool>
  Operand(Bool, std::source_location = {}) = delete;  // a bool is no operand: write a number, or where()

  // Returns the node or, for a number, a constant scalar of the dtype of `like`. Throws UserError if that
  // dtype cannot hold the number.
  Node node_like(const Node& like) const;
  // Returns the node. Throws UserError for a number.
  Node node() const;
  bool is_number() const { return std::holds_alternative<double>(content_); }
  std::source_location where() const { return where_; }

 private:
  std::variant<Node, double> content_;
  std::source_location where_;
};

// Appends an op to the graph of its operands and returns its first output. If the shape rule is broken,
// throws UserError with the user's line, the op, every shape, the rule and what to do.
PLEXAURA_API Node apply(std::shared_ptr<const Op> op, std::initializer_list<Operand> operands);
PLEXAURA_API std::vector<Node> apply_all(std::shared_ptr<const Op> op, std::span<const Operand> operands);

}  // namespace plexaura
