#pragma once

#include "distributed/summing/bucket_sum.h"
#include "distributed/summing/mail_courier.h"
#include "distributed/summing/root_sum.h"

namespace plexaura {

// The strategy `scatter-gather`: rank 0 alone needs the data. It sends the other ranks their parts of each batch, trains
// on its own, gathers all gradients, makes the update, and sends the weights. The others make no update, and keep no state
// of an optimizer. Gradients are added in the order of sum_order.h, so that N ranks get the bits of N ranks of `allreduce`.
// The link of rank 0 bounds the speed.
class ScatterGather final : public BucketSum, public WeightExchange {
 public:
  // Collective. The communicator must outlive it.
  explicit ScatterGather(Communicator& communicator);

  StrategyParts parts() override;
  void begin(WeightsImmigration& border) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void after_update() override;

 private:
  void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients, std::string_view what) override;

  RootSum sum_;
  std::int64_t weight_bytes_ = 0;  // that this rank brings behind each update
  MailCourier courier_;
};

}  // namespace plexaura
