#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/weights_immigration.h"

namespace plexaura {

// Another strategy, and every so many steps all ranks take the weights, the buffers and the optimizer's state of rank 0:
// where ranks run on processors of several kinds, whose updates may round differently.
class Rebroadcast final : public Strategy {
 public:
  // Both must outlive it. `ranks`: those that train. `every`: steps, at least 1.
  Rebroadcast(Strategy& inner, Collective& ranks, std::int64_t every)
      : inner_(inner), ranks_(ranks), every_(every) {}

  HookSet hooks() const override;
  RankRole role() const override { return inner_.role(); }
  GradientScope scope() const override { return inner_.scope(); }
  bool realigns_weights() const override { return true; }
  std::unique_ptr<Memory> gradient_memory(std::size_t bytes) override {
    return inner_.gradient_memory(bytes);
  }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override { inner_.gradients_ready(bucket, final); }
  void give_up() noexcept override { inner_.give_up(); }
  UpdateAnswer before_update(std::size_t bucket) override { return inner_.before_update(bucket); }
  void agree() override { inner_.agree(); }
  void after_update() override;
  void show_weights() override { inner_.show_weights(); }
  void take_weights_back() override { inner_.take_weights_back(); }
  bool is_exchanging() const override { return inner_.is_exchanging(); }
  // Without the weights, which all take now and then.
  std::optional<ExchangeRecord> take_exchange_record() override { return inner_.take_exchange_record(); }
  std::vector<StrategyState> state() const override { return inner_.state(); }
  void take_state(std::vector<StrategyState> state) override { inner_.take_state(std::move(state)); }
  void end() override { inner_.end(); }
  void serve(WeightsImmigration& border) override { inner_.serve(border); }

 private:
  Strategy& inner_;
  Collective& ranks_;
  std::int64_t every_;
  WeightsImmigration* border_ = nullptr;
};

}  // namespace plexaura
