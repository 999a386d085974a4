#pragma once

#include <fmt/format.h>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/weights_immigration.h"

namespace plexaura::testing {

// Sums the gradients of all ranks, bucket by bucket, when the update asks for them: the shortest strategy
// there is.
class SummingStrategy : public Strategy {
 public:
  explicit SummingStrategy(Collective& ranks) : ranks_(ranks) {}

  HookSet hooks() const override { return {.gradients_ready = true, .before_update = true}; }
  void begin(WeightsImmigration& border) override {
    border_ = &border;
    final_.assign(border.buckets().size(), nullptr);
  }
  void gradients_ready(std::size_t bucket, Event& final) override { final_[bucket] = &final; }
  UpdateAnswer before_update(std::size_t bucket) override {
    final_[bucket]->wait();
    ranks_.sum(border_->buckets()[bucket].dtype, border_->gradients(bucket).data(),
               border_->buckets()[bucket].count,
               fmt::format("bucket {} of step {}", bucket, border_->step()));
    return {};
  }

 protected:
  Collective& ranks_;
  WeightsImmigration* border_ = nullptr;
  std::vector<Event*> final_;
};

}  // namespace plexaura::testing
