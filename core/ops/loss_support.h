#pragma once

#include <initializer_list>
#include <string_view>

#include "core/graph/graph.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

// Functions for builders of losses that compose other ops.

// Checks that the operands of a loss have one floating type and shape. While it lives, new nodes have the line of the
// loss's caller as their origin.
class LossOf {
 public:
  LossOf(std::string_view loss, std::initializer_list<Operand> operands);

 private:
  Graph::WithOrigin guard_;
};

// Returns the mean of the losses (0 if there are none), their sum, or the losses themselves.
Node reduce_losses(const Node& losses, Reduction reduction);

}  // namespace plexaura
