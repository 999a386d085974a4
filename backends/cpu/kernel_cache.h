#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

// Shares kernels among regions that are equal: in their ops with all options, the connections between them, types,
// layouts, and the implementation. The position in the graph does not matter, so that sixteen equal blocks of a model
// share one kernel. A kernel lives as long as a program uses it.
class KernelCache {
 public:
  using Make = std::function<std::shared_ptr<const Kernel>()>;
  std::shared_ptr<const Kernel> get(const RegionQuery& query, const Candidate& candidate, const Make& make);
  std::size_t size() const { return kernels_.size(); }  // including some that no program uses any more

 private:
  struct Entry {
    std::vector<std::shared_ptr<const Op>> ops;  // compared exactly: the text abbreviates large options
    std::weak_ptr<const Kernel> kernel;
  };

  void forget_unused();

  std::unordered_multimap<std::string, Entry> kernels_;
  std::size_t size_to_look_through_ = 64;
};

}  // namespace plexaura
