#pragma once

#include <string>
#include <vector>

#include "core/vm/feed.h"
#include "testing/gradient_program.h"

namespace plexaura::testing {

// A copy of the part of a graph that computes a loss, in which inputs, parameters and buffers are inputs.
struct LossFunction {
  Graph graph;
  GraphInputs inputs;
  Node loss;
  std::vector<std::size_t> parameters;  // index, among the inputs, of each parameter under test

  // `values` has a value for each leaf that the loss needs, and no other values. `caller` names the function
  // in errors. Throws UserError, with the name, for a missing value, for one that is not needed or has
  // another type than its leaf, for a parameter that has no value, and for a loss that is not a floating
  // scalar.
  LossFunction(const Node& of, const std::vector<Feed>& values, const std::vector<std::string>& names,
               const std::string& caller);

  std::vector<Node> parameter_nodes() const;
};

}  // namespace plexaura::testing
