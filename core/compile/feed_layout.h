#pragma once

#include "core/compile/memory_plan.h"
#include "core/compile/step_block.h"
#include "core/tensor/shape.h"

namespace plexaura {

// Where the inputs of a program lie in a feed slot: behind the step block, in the order in which they were added to the
// graph, each at the start of a granule.
class FeedLayout {
 public:
  // The offset of the next input.
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
