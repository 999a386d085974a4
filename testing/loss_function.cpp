#include "testing/loss_function.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/graph/print.h"
#include "testing/copied_loss.h"

namespace plexaura::testing {

LossFunction::LossFunction(const Node& of, const std::vector<Feed>& values,
                           const std::vector<std::string>& names, const std::string& caller) {
  if (!is_floating(of.dtype()) || of.shape() != Shape{})
    throw UserError(fmt::format("{}: the loss is {}, of type {}; give a floating scalar", caller,
                                name_of(of.graph(), of.id()), to_string(of.type())));
  const CopiedLoss copied(of, values, caller);
  for (const Feed& value : values) inputs.add(graph, value.name(), value.tensor());
  loss = copied(graph, inputs.nodes).front();
  for (const std::string& name : names) {
    const auto found = std::ranges::find(inputs.labels, name);
    if (found == inputs.labels.end())
      throw UserError(fmt::format("{}: the parameter '{}' has no value; give it one", caller, name));
    parameters.push_back(static_cast<std::size_t>(found - inputs.labels.begin()));
  }
}

std::vector<Node> LossFunction::parameter_nodes() const {
  std::vector<Node> nodes;
  for (const std::size_t place : parameters) nodes.push_back(inputs.nodes[place]);
  return nodes;
}

}  // namespace plexaura::testing
