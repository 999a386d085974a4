#pragma once

#include <cstddef>
#include <vector>

#include "distributed/strategies/bucket_sum.h"
#include "distributed/sums/sum_order.h"

namespace plexaura {

// The strategy `reduce-broadcast`: all ranks send a bucket to rank 0, which adds all in the order of
// sum_order.h and broadcasts the sums. Rank 0 takes in all gradients, so that its link bounds the speed.
class ReduceBroadcast final : public BucketSum {
 public:
  using BucketSum::BucketSum;

  void begin(WeightsImmigration& border) override;

 private:
  void sum(DType dtype, std::span<std::byte> gradients, std::string_view what) override;
  void send_to_root(std::span<const std::byte> gradients, std::string_view what);
  void add_from_all(DType dtype, std::span<std::byte> gradients, std::string_view what);

  // On rank 0, a piece of a bucket: of all other ranks, one after the other, and of all.
  std::vector<std::byte> received_;
  std::vector<Summand> summands_;
};

}  // namespace plexaura
