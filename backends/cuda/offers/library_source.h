#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/engine/device.h"
#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda {

// The libraries' offers for a region: a candidate for each of their plans. Of those with the same layouts, only the
// first one has an estimate. Another one is taken only if it was measured to be faster.
class LibrarySource {
 public:
  LibrarySource(std::shared_ptr<Device> device, const vendor::Options& options);

  std::string versions() const { return libraries_->versions(); }
  std::vector<Candidate> propose(const RegionQuery& query);

 private:
  std::vector<Candidate> of_matrices(const RegionQuery& query);
  std::vector<Candidate> of_images(const RegionQuery& query);
  template <class Problem>
  vendor::Plans known_plans(const Problem& problem);
  double seconds_of(const RegionQuery& query, double copied_bytes) const;

  bool tf32_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<vendor::Libraries> libraries_;
  std::map<std::string, vendor::Plans> known_;  // plans of each problem, by the problem's text
};

}  // namespace plexaura::cuda
