#pragma once

#include <vector>

#include "core/device/backend.h"

// Regions of elementwise ops around slices of the last axis, such as the gates of a recurrent cell. One kernel computes
// all ops of a region row by row, so that values between them stay in the cache.

namespace plexaura::fast {

// Returns the region that ends at `last`, or nothing.
std::vector<Region> match_row_chain(const Graph& graph, NodeId last, const Uses& uses);

bool is_row_chain(const Region& region);

// True for slice and slice_grad along the last axis without gaps.
bool takes_columns(const Graph& graph, NodeId node);

// The rows of a value are its lines along the last axis. A value has as many as all other axes have elements.
std::int64_t columns_of(const Shape& shape);
std::int64_t rows_of(const Shape& shape);

// The memory that a thread has for the values of a row.
constexpr std::int64_t most_bytes_of_row = 128 << 10;
constexpr std::size_t most_values_of_chain = 64;  // inputs and results of ops

}  // namespace plexaura::fast
