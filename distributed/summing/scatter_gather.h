#pragma once

#include "distributed/summing/bucket_sum.h"
#include "distributed/summing/mail_courier.h"
#include "distributed/summing/root_sum.h"

namespace plexaura {

// The strategy `scatter-gather`: only rank 0 needs the data. It sends the other ranks their parts of each
// batch, trains on its own part, gathers all gradients, updates the weights, and sends them. The other ranks
// make no update, and have no optimizer state. Gradients are added in the order of sum_order.h, so that N
// ranks give the same bits as N ranks of `allreduce`. The link of rank 0 limits the speed.
class ScatterGather final : public BucketSum, public WeightExchange {
 public:
  // Collective. The communicator must outlive this object.
  explicit ScatterGather(Communicator& communicator);

  StrategyParts parts() override;
  void begin(WeightsImmigration& border) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void after_update() override;

 private:
  void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients, std::string_view what) override;

  RootSum sum_;
  std::int64_t weight_bytes_ = 0;  // bytes that this rank sends after each update
  MailCourier courier_;
};

}  // namespace plexaura
