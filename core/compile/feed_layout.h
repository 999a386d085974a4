#pragma once

#include "core/compile/memory_plan.h"
#include "core/compile/step_block.h"
#include "core/tensor/shape.h"

namespace plexaura {

// The addresses of a program's inputs in a feed slot: after the step block, in the order in which they were
// added to the graph. Each starts at a multiple of `granule` bytes.
class FeedLayout {
 public:
  // Adds an input, and returns its offset in bytes.
  std::int64_t append(const TensorType& type) {
    const std::size_t offset = bytes_;
    bytes_ += whole_granules(static_cast<std::size_t>(type.bytes()));
    return static_cast<std::int64_t>(offset);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = step_block_bytes;
};

}  // namespace plexaura
