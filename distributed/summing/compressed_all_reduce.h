#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "distributed/compression/compression.h"
#include "distributed/summing/bucket_sum.h"

namespace plexaura {

// The strategy `allreduce` with `distributed.compression`: gradients of trainables cross in fewer bytes. What a rank owes
// (see Compression) is added to its gradients before they are compressed. Changes of buffers and the tail, which are the
// last bucket, are summed as they are.
class CompressedAllReduce final : public BucketSum, public KeptState {
 public:
  // The communicator must outlive it.
  CompressedAllReduce(Communicator& communicator, Update update, std::unique_ptr<Compression> compression)
      : BucketSum(communicator, update), compression_(std::move(compression)) {}

  StrategyParts parts() override;
  // Throws UserError for gradients that are not float32.
  void begin(WeightsImmigration& border) override;
  std::vector<StrategyState> state() const override;
  void take_state(std::vector<StrategyState> state) override;

 private:
  void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients, std::string_view what) override;

  std::unique_ptr<Compression> compression_;
  Tensor owed_;  // of trainables, as they lie in the gradient arena
};

}  // namespace plexaura
