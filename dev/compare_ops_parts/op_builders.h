#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/window.h"
#include "core/tensor/dtype.h"

namespace plexaura {

// A call of an op: its operands, and its options as texts by name. The functions throw UserError for a text
// that does not have the required form, and the functions without a default also for an option that is
// missing.
struct OpCall {
  Graph& graph;
  std::vector<Node> inputs;
  std::map<std::string, std::string> options;

  const Node& operator[](std::size_t place) const { return inputs.at(place); }
  bool has(const std::string& name) const { return options.contains(name); }
  const std::string& text(const std::string& name) const;
  double number(const std::string& name, double otherwise) const;
  bool flag(const std::string& name) const;  // returns the option; false if it is missing
  std::int64_t integer(const std::string& name) const;
  std::int64_t integer(const std::string& name, std::int64_t otherwise) const;
  std::optional<std::int64_t> optional_integer(const std::string& name) const;
  std::vector<std::int64_t> integers(
      // Returns the numbers of an option, separated by commas; none if it is missing.
      const std::string& name) const;
  std::vector<double> numbers(const std::string& name) const;
  DType dtype() const;
  Reduction reduction() const;  // returns the option; the mean if it is missing
  Size2d size_2d(const std::string& name, std::int64_t otherwise) const;
  Size3d size_3d(const std::string& name, std::int64_t otherwise) const;
};

using OpBuilder = std::function<std::vector<Node>(const OpCall&)>;
using OpBuilders = std::map<std::string, OpBuilder, std::less<>>;

// Returns the functions that append an op to a graph and return its results, by the op's name.
const OpBuilders& op_builders();

// Add some of the functions to op_builders().
void add_elementwise_builders(OpBuilders& builders);
void add_loss_builders(OpBuilders& builders);
void add_reduction_builders(OpBuilders& builders);
void add_window_builders(OpBuilders& builders);
void add_moving_builders(OpBuilders& builders);

}  // namespace plexaura
