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

// Common base of the synchronous strategies: gradients, changes of buffers and the tail are summed over the
// ranks bucket by bucket. A bucket is summed when its update is about to begin, or earlier with Overlapped.
// So an update runs while later buckets are still to be exchanged, unless it limits the norm of all
// gradients. If a device computes asynchronously, the first buckets are exchanged while it still computes the
// gradients of later ones. Gradients are added without weights, because they are already each rank's share of
// the mean, and in the order of sum_order.h if Communicator::keeps_order(). Every wait has the communicator's
// deadline, and names bucket and step.
class BucketSum : public Strategy, public GradientSum {
 public:
  // The time at which a bucket may be updated. by_bucket: as soon as it is summed. by_step: after all ranks
  // have confirmed that all buckets are summed; then a rank whose call fails because another rank is lost has
  // the complete weights of one step. If a rank dies during the confirmation, some of the ranks that are left
  // may have made the step and others not.
  enum class Update { by_bucket, by_step };

  // The communicator must outlive this object.
  explicit BucketSum(Communicator& communicator, Update update = Update::by_bucket)
      : communicator_(communicator), update_(update), meter_(communicator) {}

  StrategyParts parts() override { return {.gradients = this, .agrees = update_ == Update::by_step}; }
  // Throws UserError for gradients of a type that ranks cannot sum.
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void agree() override;
  std::optional<ExchangeRecord> take_exchange_record() override { return meter_.take(false); }
  // Returns the meter, for Overlapped, which may still exchange during the next step.
  ExchangeMeter& meter() { return meter_; }
  std::int64_t step() const { return step_; }  // number of the step whose gradients are exchanged
  // True if the gradients of a bucket that was announced are final. May be called from any thread.
  bool is_final(std::size_t bucket) const { return final_[bucket]->passed(); }

 protected:
  Communicator& communicator() const { return communicator_; }
  WeightsImmigration& border() const { return *border_; }

  // Sums a bucket over all ranks in place. `what` names bucket and step.
  virtual void sum(std::size_t bucket, DType dtype, std::span<std::byte> gradients,
                   std::string_view what) = 0;
  // True for the last bucket, which holds the changes of buffers and the tail instead of gradients.
  bool is_last(std::size_t bucket) const { return bucket + 1 == border_->buckets().size(); }

 private:
  void add_own_shards(std::size_t bucket);

  Communicator& communicator_;
  Update update_;
  ExchangeMeter meter_;
  WeightsImmigration* border_ = nullptr;
  std::vector<std::int64_t> bytes_;  // bytes of the parameters in each bucket
  std::vector<std::byte*> shards_;   // buffer for the addresses of shards
  // For each bucket, the event that passes when its gradients are final. Set by gradients_ready(), as are
  // the members below.
  std::vector<Event*> final_;
  std::int64_t step_ = 0;
  std::size_t shards_before_ = 0;
};

}  // namespace plexaura
