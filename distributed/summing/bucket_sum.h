#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/exchange_meter.h"

namespace plexaura {

// What the synchronous strategies share: gradients, changes of buffers and tail are summed over the ranks
// bucket by bucket, each when its update is about to begin, or earlier where this is Overlapped. So an update runs while later buckets are still
// to be exchanged, unless it limits the norm of all gradients; and where a device computes by itself the first
// buckets are exchanged while it is still at work on the gradients of the others. The sum is plain, for gradients are
// already each rank's share, and added in the order of sum_order.h where Communicator::keeps_order(). Every wait has
// the communicator's deadline and names bucket and step.
class BucketSum : public Strategy, public GradientSum {
 public:
  // When a bucket may be updated: as soon as it is summed, or when all ranks have told each other that all are.
  // Then a rank whose call ends with the loss of another has the weights of one step, whole. Where a rank dies
  // while it tells, some of those that are left may have made the step and others not.
  enum class Update { by_bucket, by_step };

  // The communicator must outlive it.
  explicit BucketSum(Communicator& communicator, Update update = Update::by_bucket)
      : communicator_(communicator), update_(update), meter_(communicator) {}

  StrategyParts parts() override { return {.gradients = this, .agrees = update_ == Update::by_step}; }
  // Throws UserError for gradients of a type that ranks do not sum.
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void agree() override;
  std::optional<ExchangeRecord> take_exchange_record() override { return meter_.take(false); }
  // For who makes the exchange overlap: also with the next step, for which the border stands then.
  ExchangeMeter& meter() { return meter_; }
  std::int64_t step() const { return step_; }  // whose gradients are exchanged
  // Of a bucket that was announced. From any thread.
  bool is_final(std::size_t bucket) const { return final_[bucket]->passed(); }

 protected:
  Communicator& communicator() const { return communicator_; }
  WeightsImmigration& border() const { return *border_; }

  // Sums a bucket over all ranks in place. `what` names bucket and step.
  virtual void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients,
                   std::string_view what) = 0;
  // Changes of buffers and the tail, which are no gradients.
  bool is_last(std::size_t bucket) const { return bucket + 1 == border_->buckets().size(); }

 private:
  void add_own_shards(std::size_t bucket);

  Communicator& communicator_;
  Update update_;
  ExchangeMeter meter_;
  WeightsImmigration* border_ = nullptr;
  std::vector<std::int64_t> bytes_;  // of the parameters in each bucket
  std::vector<std::byte*> shards_;   // scratch
  std::vector<Event*> final_;        // when a bucket's gradients are; noted during backward, as what follows
  std::int64_t step_ = 0;
  std::size_t shards_before_ = 0;
};

}  // namespace plexaura
