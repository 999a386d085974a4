#pragma once

#include <vector>

#include "core/device/backend.h"

// Code that all sources of matrix products share.

namespace plexaura {

// The kind of a region that computes a product and adds a row to each of its rows. The inputs of the region
// are a, b and the row.
inline constexpr auto matmul_with_bias = "matmul+bias";

inline bool is_matmul_kind(const std::string& kind) { return kind == "matmul" || kind == matmul_with_bias; }
inline bool is_matmul(const RegionQuery& query) { return is_matmul_kind(query.region.kind); }

// Returns the region matmul_with_bias that ends at `add`, if there is one. Only one source of a backend needs
// to offer it.
std::vector<Region> match_matmul_with_bias(const Graph& graph, NodeId add, const Uses& uses);

// The shapes of a product. If b is a single matrix and a is not transposed, all axes of a but the last are
// joined to rows.
struct MatMulShapes {
  Shape a;
  Shape b;
  Shape product;
};

MatMulShapes matmul_shapes(const RegionQuery& query);

}  // namespace plexaura
