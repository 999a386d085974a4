#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "distributed/communicator/communicator.h"
#include "distributed/exchange/exchange_thread.h"
#include "distributed/summing/bucket_sum.h"
#include "distributed/summing/exchange_order.h"

namespace plexaura {

// A strategy that sums buckets, each on a thread of its own as soon as it is final, so that buckets cross while the thread
// that trains computes the others. That thread calls before_update of the inner sum, and the thread that trains calls
// everything else. Its waits have the deadlines of the communicator.
class Overlapped final : public StrategyDecorator, public GradientSum {
 public:
  // With what exchanges overlap: with the backward pass, or with the forward pass of the next step, too.
  enum class With { backward, both };

  // `exchange`: what the inner strategy makes its calls on. It must outlive this, and nobody else uses it during a
  // step; with the forward pass, nobody else at all.
  Overlapped(std::unique_ptr<BucketSum> inner, Communicator& exchange, With with = With::backward);
  ~Overlapped() override { Overlapped::give_up(); }

  StrategyParts parts() override;
  std::unique_ptr<Memory> gradient_memory(std::size_t bytes) override {
    return inner_->gradient_memory(bytes);
  }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void give_up() noexcept override;
  void agree() override;
  std::optional<ExchangeRecord> take_exchange_record() override { return inner_->meter().take(true); }

 private:
  void note_asked(std::size_t bucket);
  std::size_t bucket_at(std::size_t place, std::size_t begun);

  std::unique_ptr<BucketSum> inner_;
  Communicator& exchange_;
  With with_;
  std::size_t buckets_ = 0;
  std::optional<ExchangeOrder> order_;      // none: that in which they become final
  std::size_t final_ = 0;                   // how many were seen to be final, by the thread that exchanges
  bool is_first_ = true;                    // no bucket of the step was asked for yet
  std::atomic<bool> in_order_ = true;       // buckets are asked for as they become final
  std::unique_ptr<ExchangeThread> thread_;  // null when this was given up
};

}  // namespace plexaura
