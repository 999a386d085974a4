#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/params/weights_immigration.h"
#include "distributed/communicator.h"

namespace plexaura {

// What the synchronous strategies share: gradients, changes of buffers and tail are summed over the ranks
// bucket by bucket, each when its update is about to begin. So an update runs while later buckets are still
// to be exchanged, and where a device computes by itself the first buckets are exchanged while it is still at
// work on the gradients of the others. The sum is plain, for gradients are already each rank's share, and
// added in the order of ranks. Every wait has the communicator's deadline and names bucket and step.
class BucketSum : public Strategy {
 public:
  // The communicator must outlive it.
  explicit BucketSum(Communicator& communicator) : communicator_(communicator) {}

  HookSet hooks() const override { return {.gradients_ready = true, .before_update = true}; }
  // Throws UserError for weights of a type that ranks do not sum.
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override { final_[bucket] = &final; }
  UpdateAnswer before_update(std::size_t bucket) override;

 protected:
  Communicator& communicator() { return communicator_; }
  WeightsImmigration& border() { return *border_; }

  // Sums a bucket over all ranks in place. `what` names bucket and step.
  virtual void sum(std::span<std::byte> gradients, std::string_view what) = 0;

 private:
  Communicator& communicator_;
  WeightsImmigration* border_ = nullptr;
  std::vector<Event*> final_;  // when a bucket's gradients are; noted during backward
};

}  // namespace plexaura
