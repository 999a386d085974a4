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

// A strategy that sums each bucket on a thread as soon as it is final, so that buckets are exchanged while
// the training thread computes later ones. That thread calls before_update(), is_final() and step() of the inner
// sum. The training thread makes all other calls of the inner strategy. Waits have the deadlines of the communicator.
class Overlapped final : public StrategyDecorator, public GradientSum {
 public:
  // The passes that exchanges overlap with: the backward pass, or also the forward pass of the next step.
  enum class With { backward, both };

  // `exchange` is the communicator on which the inner strategy makes its calls. It must outlive this object.
  // With `backward`, nobody else may use it during a step; with `both`, nobody else may use it at all.
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
  // The order of exchanges; empty: the order in which buckets become final.
  std::optional<ExchangeOrder> order_;
  std::size_t final_ = 0;  // number of buckets that the exchange thread has seen to be final
  bool is_first_ = true;   // true until the first call of before_update() in a step
  // True if before_update() is first called for another bucket than the last one.
  std::atomic<bool> in_order_ = true;
  std::unique_ptr<ExchangeThread> thread_;  // null after give_up()
};

}  // namespace plexaura
