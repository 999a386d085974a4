#pragma once

#include <cstdint>

#include "distributed/summing/bucket_sum.h"
#include "distributed/summing/root_sum.h"

namespace plexaura {

// The strategy `send-recv`: one rank is a synchronous server. It has no samples and does not train. The other
// ranks send each bucket to the server, which adds their buckets in the order of sum_order.h and sends the sums back.
// So N ranks and a server give the same bits as N ranks of `allreduce`. The server's link limits the speed.
class SendReceive final : public BucketSum, public Server {
 public:
  // `communicator` has all ranks, including the server, whose number is `server`.
  explicit SendReceive(Communicator& communicator, int server = 0);

  StrategyParts parts() override;
  void end() override;
  void serve(WeightsImmigration& border) override;

 private:
  void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients, std::string_view what) override;
  void announce(std::int64_t step);
  std::int64_t hear_step();

  int server_;
  RootSum sum_;
};

}  // namespace plexaura
