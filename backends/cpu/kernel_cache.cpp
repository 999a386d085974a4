#include "backends/cpu/kernel_cache.h"

#include <algorithm>

#include "core/device/region_text.h"

namespace plexaura {

namespace {

std::vector<std::shared_ptr<const Op>> ops_of(const RegionQuery& query) {
  std::vector<std::shared_ptr<const Op>> ops;
  for (const NodeId node : query.region.nodes) ops.push_back(query.graph.record(node).op);
  return ops;
}

}  // namespace

std::shared_ptr<const Kernel> KernelCache::get(const RegionQuery& query, const Candidate& candidate,
                                               const Make& make) {
  std::string text = candidate.implementation + '\n' + text_of(query, candidate);
  std::vector<std::shared_ptr<const Op>> ops = ops_of(query);
  const auto same_op = [](const auto& a, const auto& b) { return *a == *b; };
  const auto [first, last] = kernels_.equal_range(text);
  for (auto entry = first; entry != last; ++entry)
    if (auto kernel = entry->second.kernel.lock();
        kernel && std::ranges::equal(entry->second.ops, ops, same_op))
      return kernel;
  std::shared_ptr<const Kernel> kernel = make();
  if (kernels_.size() >= size_to_look_through_) forget_unused();
  kernels_.emplace(std::move(text), Entry{std::move(ops), kernel});
  return kernel;
}

void KernelCache::forget_unused() {
  std::erase_if(kernels_, [](const auto& entry) { return entry.second.kernel.expired(); });
  size_to_look_through_ = std::max(size_to_look_through_, 2 * kernels_.size());
}

}  // namespace plexaura
