#include "backends/cuda/offers/kernel_uses.h"

#include <utility>
#include <vector>

#include "backends/cuda/engine/branches.h"
#include "backends/cuda/offers/costs.h"

namespace plexaura::cuda {

namespace {

// The sizes of a kernel's operands in bytes, and its estimated time.
struct Operands {
  std::vector<std::size_t> inputs;  // bytes of each input
  std::vector<std::size_t> outputs;
  double seconds;
};

class LaunchWithUses final : public Launch {
 public:
  LaunchWithUses(std::shared_ptr<Device> device, std::shared_ptr<Launch> launch, Work work)
      : device_(std::move(device)), launch_(std::move(launch)), work_(std::move(work)) {}

  void run() override {
    if (!device_->capture.active()) return launch_->run();
    device_->capture.add([launch = launch_] { launch->run(); }, work_);
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<Launch> launch_;
  Work work_;
};

class KernelWithUses final : public Kernel {
 public:
  KernelWithUses(std::shared_ptr<Device> device, std::shared_ptr<const Kernel> kernel, Operands operands)
      : device_(std::move(device)), kernel_(std::move(kernel)), operands_(std::move(operands)) {}

  std::size_t workspace() const override { return kernel_->workspace(); }
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<LaunchWithUses>(device_, kernel_->bind(binding), work_of(binding));
  }

 private:
  Work work_of(const Binding& binding) const {
    Work work{.seconds = operands_.seconds};
    const auto add = [&](const std::byte* begin, std::size_t bytes, bool writes) {
      if (begin != nullptr) work.uses.push_back({begin, begin + bytes, writes});
    };
    for (std::size_t i = 0; i < binding.inputs.size(); ++i)
      add(binding.inputs[i], operands_.inputs[i], false);
    for (std::size_t i = 0; i < binding.outputs.size(); ++i)
      add(binding.outputs[i], operands_.outputs[i], true);
    add(binding.workspace, workspace(), true);
    return work;
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Kernel> kernel_;
  Operands operands_;
};

std::vector<std::size_t> sizes_of(const RegionQuery& query, const std::vector<Value>& values,
                                  const std::vector<Layout>& layouts) {
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < values.size(); ++i)
    bytes.push_back(static_cast<std::size_t>(layouts[i].bytes(query.type(values[i]))));
  return bytes;
}

// Estimates the time by the libraries' speed, since the kernels that take long are the libraries'.
double seconds_of(const Device& device, const RegionQuery& query) {
  return seconds_of_launch + bytes_of(query) / device.info.bytes_in_a_second +
         operations_of(query) / operations_of_libraries;
}

}  // namespace

Candidate with_uses(std::shared_ptr<Device> device, const RegionQuery& query, Candidate candidate) {
  Operands operands{.inputs = sizes_of(query, query.region.inputs, candidate.inputs),
                    .outputs = sizes_of(query, query.region.outputs, candidate.outputs),
                    .seconds = seconds_of(*device, query)};
  candidate.make = [device = std::move(device), make = std::move(candidate.make),
                    operands = std::move(operands)]() -> std::shared_ptr<const Kernel> {
    return std::make_shared<const KernelWithUses>(device, make(), operands);
  };
  return candidate;
}

}  // namespace plexaura::cuda
