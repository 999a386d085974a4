#pragma once

#include <functional>
#include <source_location>
#include <vector>

#include "core/base/export.h"
#include "core/graph/graph.h"

namespace plexaura {

// The arguments of the backward function of a custom_gradient(). All nodes belong to one graph, which may be
// another graph than that of the call.
struct CustomGradientRequest {
  std::vector<Node> inputs;  // the inputs of the region
  Node output;               // the output of the region
  Node cotangent;            // the gradient of the output, with the output's type
};

using RegionBuilder = std::function<Node(const std::vector<Node>& inputs)>;
// Returns the gradient of each input. A gradient has the shape of its input, or a shape to which the input
// broadcasts; an empty Node stands for zero. The function may use only the nodes of the request, and
// constants that it makes in their graph.
using BackwardBuilder = std::function<std::vector<Node>(const CustomGradientRequest& request)>;

// Builds a region of the graph that has a gradient of its own: returns forward(inputs), whose gradient with
// respect to the inputs is what `backward` builds, instead of that of the ops in the region. Other nodes that
// the region uses, such as parameters, get no gradient from it; pass them as inputs. The region itself costs
// neither a copy nor a kernel.
//
// `backward` is called once for each gradient through the region, and what it builds is differentiated for
// higher orders.
//
// Throws UserError if there is no input, if inputs or the result belong to different graphs, and, when the
// gradient is built, if `backward` returns another number of nodes than there are inputs, or a node of
// another graph.
PLEXAURA_API Node custom_gradient(const std::vector<Node>& inputs, const RegionBuilder& forward,
                                  BackwardBuilder backward,
                                  std::source_location where = std::source_location::current());

}  // namespace plexaura
