#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// The result of join_devices(): sums that the devices of all ranks compute, or the reason why they cannot.
struct JoinedDevices {
  std::unique_ptr<DeviceSums> sums;  // null if they cannot
  std::string library;               // of all ranks; empty if the ranks have no common one
  std::string why_not;
};

// Collective. Joins the devices if each rank has its own and all have the same library. Returns the same
// answer on all ranks.
JoinedDevices join_devices(Communicator& ranks, Backend& backend);

// The strategy `allreduce` with sums on devices: each bucket is summed in device memory as soon as it is
// final, after the device's earlier work. If a rank's device fails, it ends the run without reporting that in
// the tail: for the other ranks it is a rank that has left.
class DeviceAllReduce final : public Strategy, public GradientSum {
 public:
  // The communicator must outlive it.
  DeviceAllReduce(Communicator& ranks, std::unique_ptr<DeviceSums> sums);

  StrategyParts parts() override { return {.gradients = this, .on_device = true}; }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void give_up() noexcept override { sums_->give_up(); }
  // The barrier keeps each rank from leaving while another one still sums.
  void end() override {
    ranks_.barrier("the end of the sums on devices");
    sums_->end();
  }

 private:
  Communicator& ranks_;
  std::unique_ptr<DeviceSums> sums_;
  WeightsImmigration* border_ = nullptr;
  std::vector<std::unique_ptr<ExchangeEvent>> summed_;  // for each bucket
};

}  // namespace plexaura
