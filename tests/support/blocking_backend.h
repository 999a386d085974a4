#pragma once

#include "tests/support/forwarding_backend.h"

namespace plexaura::testing {

// Another backend, asked as if every value [N, C, ...] came in blocks of 16 channels: a kernel that takes or
// gives blocks is used with them, whatever stands around it.
class BlockingBackend final : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;
  std::vector<Candidate> propose(const RegionQuery& query) const override;
};

}  // namespace plexaura::testing
