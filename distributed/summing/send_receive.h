#pragma once

#include <cstdint>

#include "distributed/summing/bucket_sum.h"
#include "distributed/summing/root_sum.h"

namespace plexaura {

// The strategy `send-recv`: one rank is a synchronous server. It has no samples and trains nothing: the others send it
// each bucket, and it adds these in the order of sum_order.h and sends the sums back. So N ranks and a server get the bits of N
// ranks of `allreduce`. The server's link bounds the speed.
class SendReceive final : public BucketSum, public Server {
 public:
  // Of all ranks, the server among them.
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
