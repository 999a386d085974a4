#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "distributed/compression/compression.h"
#include "distributed/summing/bucket_sum.h"

namespace plexaura {

// The strategy `allreduce` with `distributed.compression`: the gradients of trainables are transmitted in
// fewer bytes. What a rank owes (see Compression) is added to its gradients before they are compressed.
// Changes of buffers and the tail, which form the last bucket, are not compressed.
class CompressedAllReduce final : public BucketSum, public KeptState {
 public:
  // The communicator must outlive this object.
  CompressedAllReduce(Communicator& communicator, Update update, std::unique_ptr<Compression> compression)
      : BucketSum(communicator, update), compression_(std::move(compression)) {}

  StrategyParts parts() override;
  // Throws UserError for gradients that are not float32, or that the compression refuses.
  void begin(WeightsImmigration& border) override;
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;

 private:
  void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients, std::string_view what) override;

  std::unique_ptr<Compression> compression_;
  Tensor owed_;  // the owed gradients of trainable parameters, with their layout in the gradient arena
};

}  // namespace plexaura
