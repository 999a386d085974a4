#pragma once

#include <optional>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// where(gt(y, 0), grad, 0), the gradient of relu from its output: one kernel computes it without the mask.
struct ReluMask {
  NodeId compare;
  NodeId where;
  Value y;
  Value grad;                // of y's type
  std::vector<Value> zeros;  // the constants, each once
};

// Whether `value` is such a gradient whose mask nobody else reads.
std::optional<ReluMask> find_relu_mask(const Graph& graph, Value value, const Uses& uses);

}  // namespace plexaura
