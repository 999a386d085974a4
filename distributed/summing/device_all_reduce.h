#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Sums that the devices of all ranks make, or why they do not.
struct JoinedDevices {
  std::unique_ptr<DeviceSums> sums;  // null: they do not
  std::string library;               // of all ranks; empty where a rank has none
  std::string why_not;
};

// Has the devices join, where each rank has one of its own and all have the same library. The same answer on all ranks. Collective.
JoinedDevices join_devices(Communicator& ranks, Backend& backend);

// The strategy `allreduce` where devices sum: buckets are summed where they lie, each as soon as it is final, behind what the
// device computes. A rank whose device fails ends the run without telling the others in the tail: they hear of it as of a rank
// that has left.
class DeviceAllReduce final : public Strategy, public GradientSum {
 public:
  // The communicator must outlive it.
  DeviceAllReduce(Communicator& ranks, std::unique_ptr<DeviceSums> sums);

  StrategyParts parts() override { return {.gradients = this, .on_device = true}; }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void give_up() noexcept override { sums_->give_up(); }
  // No rank leaves while another one sums.
  void end() override {
    ranks_.barrier("the end of the sums on devices");
    sums_->end();
  }

 private:
  Communicator& ranks_;
  std::unique_ptr<DeviceSums> sums_;
  WeightsImmigration* border_ = nullptr;
  std::vector<std::unique_ptr<ExchangeEvent>> summed_;  // per bucket
};

}  // namespace plexaura
