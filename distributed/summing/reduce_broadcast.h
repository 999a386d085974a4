#pragma once

#include "distributed/summing/bucket_sum.h"
#include "distributed/summing/root_sum.h"

namespace plexaura {

// The strategy `reduce-broadcast`: all other ranks send each bucket to rank 0, which adds their buckets to its own
// and broadcasts the sums.
class ReduceBroadcast final : public BucketSum {
 public:
  explicit ReduceBroadcast(Communicator& communicator, Update update = Update::by_bucket)
      : BucketSum(communicator, update), sum_(communicator, 0, true) {}

 private:
  void sum(std::size_t /*bucket*/, DType dtype, std::span<std::byte> gradients,
           std::string_view what) override {
    sum_.sum(dtype, gradients, what);
  }

  RootSum sum_;
};

}  // namespace plexaura
