#pragma once

#include <vector>

#include "core/params/weights_immigration.h"
#include "distributed/communicator.h"

namespace plexaura::testing {

// A sum that needs a rank which serves: it takes part in every exchange with zeros, until it hears that there
// is no further step. So the sums are those of the ranks that train.
class ServedSum final : public Strategy {
 public:
  ServedSum(Communicator& all, int serving) : all_(all), serving_(serving) {}

  HookSet hooks() const override { return {.gradients_ready = true, .before_update = true}; }
  RankRole role() const override { return all_.rank() == serving_ ? RankRole::serves : RankRole::trains; }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override { final_[bucket] = &final; }
  UpdateAnswer before_update(std::size_t bucket) override;
  void end() override { goes_on(0); }
  void serve(WeightsImmigration& border) override;

 private:
  bool goes_on(std::int64_t mine);
  void sum(std::size_t bucket, std::byte* data);

  Communicator& all_;
  int serving_;
  WeightsImmigration* border_ = nullptr;
  std::vector<Event*> final_;
};

}  // namespace plexaura::testing
