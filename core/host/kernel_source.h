#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/backend.h"
#include "core/loops/denormals.h"

namespace plexaura {

// A family of CPU kernels, such as those of oneDNN or our own elementwise loops. The CPU backend queries its
// sources in order. The functions have the same meaning as those of Backend. The backend caches kernels, so
// Candidate::make may be slow. Launches run on host addresses, are done when run() returns, and use the
// OpenMP threads.
class KernelSource {
 public:
  virtual ~KernelSource() = default;

  // Returns the regions of more than one node that end at `last`, preferred ones first.
  virtual std::vector<Region> match(const Graph& /*graph*/, NodeId /*last*/, const Uses& /*uses*/) const {
    return {};
  }

  // Returns the nodes to be computed twice for regions that contain `last`.
  virtual std::vector<Repeat> repeats(const Graph& /*graph*/, NodeId /*last*/, const Uses& /*uses*/) const {
    return {};
  }

  virtual std::vector<Candidate> propose(const RegionQuery& query) const = 0;

  // Returns true for a kind of region that this source may offer kernels for, and false if propose() never
  // returns a candidate for it. By default, returns true for all kinds.
  virtual bool knows(const std::string& /*kind*/) const { return true; }

  // Says whether the calling thread keeps or flushes denormals while a kernel of this source runs. Kernels
  // with many multiplications of float32 may flush them.
  virtual Denormals denormals() const { return Denormals::kept; }
};

}  // namespace plexaura
