#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/layout.h"

namespace plexaura::fast {

// Sets the padding of a value to zero. The constructor finds the addresses of the padding; erase() allocates
// nothing.
class PaddingEraser {
 public:
  PaddingEraser(const Layout& layout, const TensorType& type);
  void erase(std::byte* data) const;

 private:
  struct Run {
    std::int64_t begin;
    std::int64_t bytes;
  };

  // The elements whose index along one axis is beyond the last real element.
  struct Band {
    std::vector<Run> runs;                           // runs of padding along the axis
    std::vector<std::vector<std::int64_t>> corners;  // for each other axis: the offset of each index
    std::int64_t rows = 1;  // the product of the extents of all other axes but the last

    void erase(std::byte* data) const;
    void erase_row(std::byte* data, std::int64_t row) const;
  };

  static void append(std::vector<Run>& runs, Run run);

  std::vector<Band> bands_;
};

}  // namespace plexaura::fast
