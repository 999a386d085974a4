// The functions of backends/cuda/vendor/sums.h on the simulated device. Its stream is held until all ranks
// have contributed to the sum.

#include "backends/cuda/vendor/sums.h"

#include <fmt/format.h>

#include "backends/cuda/kernels/block.h"
#include "tests/support/far_device/shared_sums.h"
#include "tests/support/simulated_cuda/simulation.h"

namespace plexaura::cuda::vendor {

namespace {

class SimulatedSums final : public Sums {
 public:
  SimulatedSums(const Membership& of, double deadline_seconds)
      : shared_(std::make_shared<far_device::SharedSums>(of.token, of.rank, of.ranks, deadline_seconds)) {}
  ~SimulatedSums() override { SimulatedSums::give_up(); }
  SimulatedSums(const SimulatedSums&) = delete;
  SimulatedSums& operator=(const SimulatedSums&) = delete;

  void sum(runtime::Stream* stream, DType dtype, Address data, std::int64_t count) override {
    simulation::Device& device = simulation::Device::get();
    const auto lock = device.lock();
    device.throw_failure();
    const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
    place_of(data, bytes);
    device.hold(stream, simulation::HoldByOthers{[shared = shared_] { return shared->have_read(); }});
    device.enqueue(stream, "what a sum reads",
                   [=, shared = shared_] { shared->bring(place_of(data, bytes), bytes); });
    device.hold(stream, simulation::HoldByOthers{[shared = shared_] { return shared->have_brought(); }});
    device.enqueue(stream, "a sum",
                   [=, shared = shared_] { shared->add(dtype, place_of(data, bytes), count); });
  }
  std::string failure() override { return ""; }
  void give_up() noexcept override { shared_->give_up(); }
  void end() noexcept override {}

 private:
  std::shared_ptr<far_device::SharedSums> shared_;
};

}  // namespace

std::string sums_version() { return "simulated NCCL"; }

std::string make_token() { return far_device::SharedSums::make_token(); }

std::unique_ptr<Sums> join(const Membership& membership, double deadline_seconds) {
  return std::make_unique<SimulatedSums>(membership, deadline_seconds);
}

}  // namespace plexaura::cuda::vendor
