#pragma once

#include <fmt/format.h>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/strategy.h"

namespace plexaura::testing {

// The shortest possible strategy: sums the gradients of all ranks, bucket by bucket, when the update needs
// them.
class SummingStrategy : public Strategy, public GradientSum {
 public:
  explicit SummingStrategy(Collective& ranks) : ranks_(ranks) {}

  StrategyParts parts() override { return {.gradients = this}; }
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
