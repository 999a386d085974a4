#pragma once

#include <functional>
#include <source_location>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// What the backward builder of custom_gradient() gets. All nodes belong to one graph, which need not be that of the call.
struct CustomGradientRequest {
  std::vector<Node> inputs;  // those of the region
  Node output;               // the value of the region
  Node cotangent;            // with the type of the output
};

using RegionBuilder = std::function<Node(const std::vector<Node>& inputs)>;
// Returns the gradient of each input, with a shape that the input's broadcasts to; an empty Node for zero. It uses no other
// nodes than those that it gets, and constants that it makes in their graph.
using BackwardBuilder = std::function<std::vector<Node>(const CustomGradientRequest& request)>;

// Builds a region of the graph that has a gradient of its own: returns forward(inputs), whose gradient with respect to the
// inputs is what `backward` builds, instead of that of the ops in the region. What the region uses besides `inputs`, such as
// parameters, gets no gradient; pass it as an input. No copy is made and no kernel runs for it.
//
// `backward` is called once for each gradient through the region, and what it builds is differentiated for higher orders.
//
// Throws UserError if there is no input, if inputs or the result belong to different graphs, and, when the gradient is built,
// if `backward` returns another number of nodes than there are inputs, or a node of another graph.
PLEXAURA_API Node custom_gradient(const std::vector<Node>& inputs, const RegionBuilder& forward,
                                  BackwardBuilder backward,
                                  std::source_location where = std::source_location::current());

}  // namespace plexaura
