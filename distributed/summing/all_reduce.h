#pragma once

#include <memory>

#include "distributed/summing/bucket_sum.h"

namespace plexaura {

// The strategy `allreduce`. If the backend's memory is host memory, the gradient arena is a window that the ranks of a
// node share: the algorithms `window` and `hierarchical` add buckets directly in the arenas, except very small ones.
// Between nodes, with other algorithms, and if ranks cannot share memory, messages carry the sums.
class AllReduce final : public BucketSum {
 public:
  using BucketSum::BucketSum;

  // Collective. Returns this rank's window.
  std::unique_ptr<Memory> gradient_memory(std::size_t bytes) override;

 private:
  void sum(std::size_t /*bucket*/, DType dtype, std::span<std::byte> gradients,
           std::string_view what) override;

  std::shared_ptr<SharedWindow> window_;  // the gradient arena; the parameter store's memory shares it
};

}  // namespace plexaura
