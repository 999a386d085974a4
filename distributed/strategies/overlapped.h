#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/communicator.h"
#include "distributed/strategies/bucket_sum.h"
#include "distributed/strategies/exchange_thread.h"

namespace plexaura {

// A strategy that sums buckets, each on a thread of its own as soon as it is final, so that buckets cross while the thread
// that trains computes the others. That thread asks the inner strategy before_update, and the thread that trains
// everything else, when no bucket is under way. Its waits have the deadlines of the communicator.
class Overlapped final : public Strategy {
 public:
  // `exchange`: what the inner strategy makes its calls on. It must outlive this, and nobody else uses it during a
  // step.
  Overlapped(std::unique_ptr<BucketSum> inner, Communicator& exchange);
  ~Overlapped() override { Overlapped::give_up(); }

  HookSet hooks() const override { return inner_->hooks(); }
  std::unique_ptr<Memory> value_memory(std::size_t bytes) override { return inner_->value_memory(bytes); }
  std::unique_ptr<Memory> gradient_memory(std::size_t bytes) override {
    return inner_->gradient_memory(bytes);
  }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void give_up() noexcept override;
  UpdateAnswer::Kind agree() override;
  std::optional<ExchangeRecord> take_exchange_record() override { return inner_->meter().take(true); }
  std::vector<StrategyState> state() const override { return inner_->state(); }
  void take_state(std::vector<StrategyState> state) override { inner_->take_state(std::move(state)); }

 private:
  std::unique_ptr<BucketSum> inner_;
  Communicator& exchange_;
  WeightsImmigration* border_ = nullptr;
  std::unique_ptr<ExchangeThread> thread_;  // null when this was given up
};

}  // namespace plexaura
