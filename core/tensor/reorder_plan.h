#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/layout.h"

namespace plexaura {

// A copy of values of one type from one layout to another in host memory. Its tables are made once, so that a
// run allocates nothing. Immutable: may run in several threads at a time.
class PLEXAURA_API ReorderPlan {
 public:
  ReorderPlan(const Layout& from, const Layout& to, const TensorType& type);

  // The whole value; padding of the target becomes zero. `src` and `dst` do not overlap.
  void run(const std::byte* src, std::byte* dst) const;

  // The same in parts, for several threads: first clear_padding(), then every piece once, in any order.
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
  std::int64_t pieces_;  // runs along the last logical axis; of one layout: runs of bytes
  std::vector<std::vector<std::int64_t>> read_;   // Layout::axis_offsets of the source
  std::vector<std::vector<std::int64_t>> write_;  // ... and of the target; a scalar counts as one axis of 1
};

}  // namespace plexaura
