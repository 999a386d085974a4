#pragma once

#include <optional>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// where(gt(y, 0), grad, 0), the gradient of relu computed from its output. One kernel computes it without
// storing the mask.
struct ReluMask {
  NodeId compare;
  NodeId where;
  Value y;
  Value grad;                // has y's type
  std::vector<Value> zeros;  // the constants, each once
};

// Returns the parts of such a gradient if `value` is one and no other node reads its mask.
std::optional<ReluMask> find_relu_mask(const Graph& graph, Value value, const Uses& uses);

}  // namespace plexaura
