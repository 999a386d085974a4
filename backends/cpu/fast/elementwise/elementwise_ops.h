#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/device/backend.h"

namespace plexaura::fast {

constexpr std::size_t most_operands = 3;
constexpr auto relu_mask = "gt+where";  // the kind of the region that computes the gradient of relu

// Calls an op's innermost loop, with the address of a piece of each operand, and the operand's step: 0 or 1.
using Inner = std::function<void(const std::byte* const* operands, const std::int64_t* steps, std::byte* y,
                                 std::int64_t count)>;

struct Elementwise {
  Inner inner;
  double nanoseconds;
  // The number of inputs that the loop reads. The region's other inputs are constants that the loop contains.
  std::size_t operands;
  // True if the loop first copies operands of one element to arrays. A caller with many pieces can do this once with
  // repeat().
  bool repeats = false;
};

// Writes `count` copies of one element of 1, 2, 4 or 8 bytes.
void repeat(const std::byte* element, std::size_t bytes, std::byte* to, std::int64_t count);

// Returns the loop of a region, or nothing if there is none for its op and dtypes.
std::optional<Elementwise> elementwise_of(const RegionQuery& query);
// Returns the loop of one op of a graph, or nothing if there is none.
std::optional<Elementwise> elementwise_of(const Graph& graph, NodeId node);

// Returns the different layouts of the operands that have the result's shape.
std::vector<Layout> layouts_like_result(const RegionQuery& query);

}  // namespace plexaura::fast
