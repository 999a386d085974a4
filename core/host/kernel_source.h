#pragma once

#include <memory>
#include <vector>

#include "core/device/backend.h"
#include "core/loops/denormals.h"

namespace plexaura {

// A family of CPU kernels: oneDNN, fused elementwise chains, ... The CPU backend asks its sources in order.
// Their functions mean what those of Backend mean; kernels are cached by the backend, so Candidate::make may
// take its time. Launches run on host addresses, are done when run() returns, and use the OpenMP threads.
class KernelSource {
 public:
  virtual ~KernelSource() = default;

  // Regions of more than one node that end at `last`, the preferred first.
  virtual std::vector<Region> match(const Graph& /*graph*/, NodeId /*last*/, const Uses& /*uses*/) const {
    return {};
  }

  virtual std::vector<Candidate> propose(const RegionQuery& query) const = 0;

  // What the calling thread does with denormals while a kernel runs. Kernels that multiply a lot of float32 may flush them.
  virtual Denormals denormals() const { return Denormals::kept; }
};

}  // namespace plexaura
