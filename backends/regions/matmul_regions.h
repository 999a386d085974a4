#pragma once

#include <vector>

#include "core/device/backend.h"

// What the sources of matrix products share.

namespace plexaura {

// A product and a row that is added to each of its rows: inputs a, b and the row.
inline constexpr auto matmul_with_bias = "matmul+bias";

inline bool is_matmul(const RegionQuery& query) {
  return query.region.kind == "matmul" || query.region.kind == matmul_with_bias;
}

// The region matmul_with_bias that ends at `add`, if there is one. One source offers it for all.
std::vector<Region> match_matmul_with_bias(const Graph& graph, NodeId add, const Uses& uses);

// Where b is one matrix the axes of a in front of its last two are rows, too.
struct MatMulShapes {
  Shape a;
  Shape b;
  Shape product;
};

MatMulShapes matmul_shapes(const RegionQuery& query);

}  // namespace plexaura
