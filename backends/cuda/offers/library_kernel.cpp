#include "backends/cuda/offers/library_kernel.h"

#include <fmt/format.h>
#include <span>

#include "backends/cuda/kernels/kernels.h"
#include "core/base/error.h"

namespace plexaura::cuda {

namespace {

// Returns the first address, from `address` on, with the alignment that the libraries need for workspace.
Address aligned(Address address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  return address +
         (vendor::workspace_alignment - place % vendor::workspace_alignment) % vendor::workspace_alignment;
}

class LibraryLaunch final : public Launch {
 public:
  LibraryLaunch(std::shared_ptr<Device> device, std::shared_ptr<const vendor::Plan> plan,
                const std::optional<Bias>& bias, const Binding& binding)
      : device_(std::move(device)),
        plan_(std::move(plan)),
        bias_(bias),
        name_(binding.name != nullptr ? *binding.name : "a kernel without a name"),
        output_(binding.outputs[0]),
        bias_address_(bias ? binding.inputs[bias->input] : nullptr) {
    std::span<const Address> inputs = binding.inputs;
    if (bias) inputs = inputs.first(bias->input);
    if (output_ != nullptr) work_ = plan_->bind(inputs, output_, aligned(binding.workspace));
  }

  void run() override {
    if (!work_) return;
    try {
      work_(device_->branch().stream);
    } catch (const DeviceError& error) {
      throw DeviceError(fmt::format("{}: {}", name_, error.what()));
    }
    if (bias_) add_bias();
  }

 private:
  void add_bias() const {
    const View inputs[] = {{bias_address_, &bias_->type}};
    const View outputs[] = {{output_, &bias_->result}};
    enqueue_bias({*bias_->op, inputs, outputs, device_->branch().stream, name_,
                  device_->wrong_index.address(), bias_->channels_last});
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<const vendor::Plan> plan_;
  std::optional<Bias> bias_;
  std::string name_;
  Address output_;  // null: no one reads the output
  Address bias_address_;
  std::function<void(runtime::Stream* stream)> work_;
};

}  // namespace

LibraryKernel::LibraryKernel(std::shared_ptr<Device> device, std::shared_ptr<const vendor::Plan> plan,
                             std::optional<Bias> bias)
    : device_(std::move(device)), plan_(std::move(plan)), bias_(std::move(bias)) {}

// Returns the bytes of workspace. The engine aligns workspace as it aligns values, so some bytes may be
// skipped until the libraries' alignment.
std::size_t LibraryKernel::workspace() const {
  constexpr std::size_t skipped = vendor::workspace_alignment - vendor::operand_alignment;
  return plan_->workspace() == 0 ? 0 : plan_->workspace() + skipped;
}

std::unique_ptr<Launch> LibraryKernel::bind(const Binding& binding) const {
  return std::make_unique<LibraryLaunch>(device_, plan_, bias_, binding);
}

}  // namespace plexaura::cuda
