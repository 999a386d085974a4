#pragma once

#include <vector>

#include "core/device/backend.h"

// Regions of elementwise ops around slices of the last axis, such as the gates of a recurrent cell. One kernel computes
// all ops of a region row by row, so that values between them stay in the cache.

namespace plexaura::fast {

// Returns the region that ends at `last`, or an empty list if there is none.
std::vector<Region> match_row_chain(const Graph& graph, NodeId last, const Uses& uses);

bool is_row_chain(const Region& region);

// True for slice and slice_grad along the last axis without gaps.
bool takes_columns(const Graph& graph, NodeId node);

// A row of a value is a line along its last axis. columns_of() returns the elements of a row, and rows_of() the number of
// rows, which is the product of all other extents.
std::int64_t columns_of(const Shape& shape);
std::int64_t rows_of(const Shape& shape);

// The bytes of a thread's memory for inner results. All results of one row of a region fit into it.
constexpr std::int64_t most_bytes_of_row = 128 << 10;
constexpr std::size_t most_values_of_chain = 64;  // inputs and results of ops

}  // namespace plexaura::fast
