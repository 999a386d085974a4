#pragma once

#include <algorithm>
#include <string_view>

#include "core/device/backend.h"
#include "core/host/costs.h"

// Functions with which sources of kernels look for regions in a graph and check queries.

namespace plexaura {

inline bool is_op(const Graph& graph, NodeId node, std::string_view name) {
  return graph.record(node).op->name() == name;
}

inline bool has_elements(const Graph& graph, Value value) { return graph.type(value).shape.elements() > 0; }

inline bool has_16_bits(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

inline bool is_float32(const Graph& graph, Value value) { return graph.type(value).dtype == DType::float32; }

// True if all inputs and outputs of the region have this dtype, and none is empty.
inline bool is_dense(const RegionQuery& query, DType dtype) {
  const auto fits = [&](Value value) {
    return query.type(value).dtype == dtype && has_elements(query.graph, value);
  };
  return std::ranges::all_of(query.region.inputs, fits) && std::ranges::all_of(query.region.outputs, fits);
}
inline bool is_dense_float32(const RegionQuery& query) { return is_dense(query, DType::float32); }

// Estimates the time of a kernel that only reads and writes: the bytes of all operands in the candidate's
// layouts, times `traffic`, divided by the speed of memory.
inline double seconds_of_traffic(const RegionQuery& query, const Candidate& candidate, double traffic = 1) {
  double bytes = 0;
  for (std::size_t i = 0; i < candidate.inputs.size(); ++i)
    bytes += static_cast<double>(candidate.inputs[i].bytes(query.type(query.region.inputs[i])));
  for (std::size_t i = 0; i < candidate.outputs.size(); ++i)
    bytes += static_cast<double>(candidate.outputs[i].bytes(query.type(query.region.outputs[i])));
  return costs::seconds_of_launch + traffic * bytes / costs::bytes_of_memory;
}

}  // namespace plexaura
