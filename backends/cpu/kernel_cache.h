#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// Shares kernels among equal regions. Regions are equal if their ops with all options, the connections between these,
// the types, the wanted outputs, the layouts and the implementation are equal. The position in the graph does not
// matter, so that sixteen equal blocks of a model share one kernel. A kernel lives as long as a program uses
// it.
class KernelCache {
 public:
  using Make = std::function<std::shared_ptr<const Kernel>()>;
  std::shared_ptr<const Kernel> get(const RegionQuery& query, const Candidate& candidate, const Make& make);
  std::size_t size() const { return kernels_.size(); }  // counts also kernels that no program uses any more

 private:
  struct Entry {
    // Ops with their options, which are compared exactly, since the text abbreviates large options.
    std::vector<std::shared_ptr<const Op>> ops;
    std::weak_ptr<const Kernel> kernel;
  };

  void forget_unused();

  std::unordered_multimap<std::string, Entry> kernels_;
  std::size_t size_to_look_through_ = 64;
};

}  // namespace plexaura
