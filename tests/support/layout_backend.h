#pragma once

#include "core/device/forwarding_backend.h"

namespace plexaura::testing {

using LayoutOfRank = Layout (*)(std::int64_t rank);

Layout in_blocks(std::int64_t rank);         // values [N, C, ...] in blocks of 16 channels, others row-major
Layout in_channels_last(std::int64_t rank);  // values [N, C, H, W] as [N, H, W, C], others row-major

// Offers the kernels of another backend as if every value came in this layout. A kernel that uses the layout
// is therefore chosen, whatever its neighbours are.
class LayoutBackend final : public ForwardingBackend {
 public:
  LayoutBackend(Backend& inner, LayoutOfRank layout_of) : ForwardingBackend(inner), layout_of_(layout_of) {}
  std::vector<Candidate> propose(const RegionQuery& query) const override;

  // Returns true if a kernel was offered that uses the layout. Otherwise all programs are those of the other backend.
  bool was_used() const { return was_used_; }

 private:
  LayoutOfRank layout_of_;
  mutable bool was_used_ = false;
};

}  // namespace plexaura::testing
