#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// The result of join_devices(): sums that the devices of all ranks compute, or the reason why they cannot.
struct JoinedDevices {
  std::unique_ptr<DeviceSums> sums;  // null if the devices cannot sum
  std::string library;  // name of the library that all ranks have; empty if they have no common one
  std::string why_not;
};

// Collective. Joins the devices if each rank has its own and all have the same library. Returns the same
// answer on all ranks.
JoinedDevices join_devices(Communicator& ranks, Backend& backend);

// The strategy `allreduce` with sums on devices: each bucket is summed in device memory as soon as it is
// final, after the device's earlier work. If a rank's device fails, that rank ends without reporting the
// failure in the tail. The other ranks notice only that it has left.
class DeviceAllReduce final : public Strategy, public GradientSum {
 public:
  // The communicator must outlive this object.
  DeviceAllReduce(Communicator& ranks, std::unique_ptr<DeviceSums> sums);

  StrategyParts parts() override { return {.gradients = this, .on_device = true}; }
  void begin(WeightsImmigration& border) override;
  void gradients_ready(std::size_t bucket, Event& final) override;
  UpdateAnswer before_update(std::size_t bucket) override;
  void give_up() noexcept override { sums_->give_up(); }
  // Waits until all ranks have come, so that no rank leaves while another one still sums.
  void end() override {
    ranks_.barrier("the end of the sums on devices");
    sums_->end();
  }

 private:
  Communicator& ranks_;
  std::unique_ptr<DeviceSums> sums_;
  WeightsImmigration* border_ = nullptr;
  // For each bucket, the event that passes when it is summed.
  std::vector<std::unique_ptr<ExchangeEvent>> summed_;
};

}  // namespace plexaura
