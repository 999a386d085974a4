#pragma once

#include <cstdint>

#include "core/graph/node.h"

namespace plexaura::onnx {

// Returns the product by the rule of numpy's matmul: a vector on the left is a matrix with one row, one on the right is
// a matrix with one column, and the product does not have that axis.
Node matrix_product(const Node& a, const Node& b);

// Returns x as a matrix: the axes before `axis`, from 0 to the rank, become its rows, and the others its columns.
Node as_matrix(const Node& x, std::int64_t axis);

}  // namespace plexaura::onnx
