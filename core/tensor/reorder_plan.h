#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/layout.h"

namespace plexaura {

// Copies values of one type from one layout to another in host memory. The constructor makes its tables, so
// that a run allocates nothing. Immutable: several threads may run it at once.
class PLEXAURA_API ReorderPlan {
 public:
  ReorderPlan(const Layout& from, const Layout& to, const TensorType& type);

  // Copies the whole value. Padding of the target becomes zero. `src` and `dst` must not overlap.
  void run(const std::byte* src, std::byte* dst) const;

  // Make the same copy in pieces, for several threads: first clear_padding(), then every piece once, in any
  // order.
  void clear_padding(std::byte* dst) const;
  std::int64_t pieces() const { return pieces_; }
  void copy_pieces(const std::byte* src, std::byte* dst, std::int64_t begin, std::int64_t end) const;

 private:
  template <class Element>
  void copy_elements(const std::byte* src, std::byte* dst, std::int64_t begin, std::int64_t end) const;

  std::size_t element_bytes_;
  std::size_t target_bytes_;
  bool same_layout_;
  bool pads_;
  // Number of pieces: runs along the last logical axis, or runs of bytes if both layouts are equal.
  std::int64_t pieces_;
  std::vector<std::vector<std::int64_t>> read_;  // Layout::axis_offsets of the source
  // Layout::axis_offsets of the target; a scalar counts as one axis of extent 1.
  std::vector<std::vector<std::int64_t>> write_;
};

}  // namespace plexaura
