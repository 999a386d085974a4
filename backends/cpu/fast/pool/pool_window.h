#pragma once

#include <cstdint>

#include "backends/cpu/fast/clones.h"

namespace plexaura::fast {

// The part of a window along one axis that lies inside the image: the elements [begin, end) of the kernel, of
// which the first is at position `first` of the image.
struct Inside {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;
};

PLEXAURA_INLINE Inside inside(std::int64_t place, std::int64_t kernel, std::int64_t stride,
                              std::int64_t padding, std::int64_t extent) {
  const std::int64_t start = place * stride - padding;
  const std::int64_t begin = start < 0 ? -start : 0;
  const std::int64_t end = kernel < extent - start ? kernel : extent - start;
  return {begin, end, start + begin};
}

}  // namespace plexaura::fast
