#pragma once

#include <cstdint>

#include "core/loops/loops.h"
#include "core/ops/philox.h"

namespace plexaura::portable {

// Returns the index of a value's first element in the global batch. Returns 0 if axis 0 is not the batch.
inline std::int64_t first_index(const Shape& shape, bool batch, std::int64_t first_sample) {
  return batch && shape.rank() > 0 ? first_sample * stride_of(shape, 0) : 0;
}

// Calls body(element, block, lane) for the elements [begin, end). words[lane] of the block are the random
// bits of the element. `first` is the index of element 0.
template <class Body>
void for_each_draw(const philox::Draws& draws, std::int64_t first, std::int64_t begin, std::int64_t end,
                   const Body& body) {
  for (std::int64_t i = begin; i < end;) {
    const philox::Block block = draws.block((first + i) / 4);
    for (std::int64_t lane = (first + i) % 4; lane < 4 && i < end; ++lane, ++i) body(i, block, lane);
  }
}

}  // namespace plexaura::portable
