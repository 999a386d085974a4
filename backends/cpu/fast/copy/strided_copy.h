#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plexaura::fast {

// One of the nested loops of a copy: the steps are in elements, and may be negative.
struct CopyLoop {
  std::int64_t extent;
  std::int64_t from;  // step in the source
  std::int64_t to;    // step in the destination
};

// Copies elements from one strided array to another one. The two must not overlap, and no element is written twice.
// Neighbouring elements are copied together, and two axes that change places are copied in blocks.
class StridedCopy {
 public:
  // The loops may be in any order. An element has 1, 2, 4 or 8 bytes.
  StridedCopy(std::vector<CopyLoop> loops, std::size_t element_bytes);

  // The addresses are those of the first element that the loops copy.
  void run(const std::byte* src, std::byte* dst) const;

  // Returns the number of elements that are copied.
  std::int64_t elements() const;

 private:
  void run_tile(std::int64_t tile, const std::byte* src, std::byte* dst) const;

  std::vector<CopyLoop> outer_;  // outermost first
  // The two inner loops. They are copied in tiles.
  CopyLoop rows_{1, 0, 0};
  CopyLoop columns_{1, 1, 1};
  std::size_t element_bytes_;
};

}  // namespace plexaura::fast
