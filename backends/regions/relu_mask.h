#pragma once

#include <optional>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// The nodes of where(gt(y, 0), grad, 0), which is the gradient of relu computed from its output. One kernel
// computes it without storing the mask.
struct ReluMask {
  NodeId compare;
  NodeId where;
  Value y;
  Value grad;                // gradient of the result; has y's type
  std::vector<Value> zeros;  // the constants of the expression, each once
};

// Returns the ReluMask of `value` if `value` is a gradient of relu whose mask no other node reads.
std::optional<ReluMask> find_relu_mask(const Graph& graph, Value value, const Uses& uses);

}  // namespace plexaura
