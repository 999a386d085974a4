#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/layout.h"

namespace plexaura::fast {

// Sets the padding of a value to zero. What there is to clear is found when it is made; erase() allocates
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

  // Everything whose index along one axis lies behind the last element.
  struct Band {
    std::vector<Run> runs;                           // along the axis
    std::vector<std::vector<std::int64_t>> corners;  // of each index along the other axes, padding included
    std::int64_t rows = 1;                           // of all corners but the last axis'

    void erase(std::byte* data) const;
    void erase_row(std::byte* data, std::int64_t row) const;
  };

  static void append(std::vector<Run>& runs, Run run);

  std::vector<Band> bands_;
};

}  // namespace plexaura::fast
