#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "onnx/ops/call.h"

namespace plexaura::onnx {

// Adds the ops that compute one node of a file, and returns its outputs. Outputs that nothing reads may be empty or, at
// the end, left out.
using Builder = std::vector<Node> (*)(Call& call);

// The builder of nodes with this op, from this version of the set of ops on, up to the next row of the same op.
struct Row {
  std::string_view op;
  std::int64_t since = 1;
  Builder build = nullptr;
};

// The rows of each family of ops.
std::span<const Row> elementwise_rows();
std::span<const Row> shape_rows();
std::span<const Row> index_rows();
std::span<const Row> reduce_rows();
std::span<const Row> window_rows();
std::span<const Row> pool_rows();
std::span<const Row> norm_rows();
std::span<const Row> loss_rows();
std::span<const Row> resize_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> quantised_rows();
std::span<const Row> update_rows();
std::span<const Row> control_flow_rows();
std::span<const Row> grid_rows();
std::span<const Row> signal_rows();

// Returns the row for an op in a version of the set of ops, or null if there is none.
const Row* find_row(std::string_view op, std::int64_t version);

}  // namespace plexaura::onnx
