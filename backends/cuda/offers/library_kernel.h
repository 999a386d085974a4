#pragma once

#include <memory>
#include <optional>

#include "backends/cuda/engine/device.h"
#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda {

// A convolution's bias, which is added to its channels behind the library's work.
struct Bias {
  std::shared_ptr<const Op> op;
  std::size_t input;  // which of the op's
  TensorType type;
  TensorType result;
  bool channels_last = false;
};

// A kernel that a plan of a library computes.
class LibraryKernel final : public Kernel {
 public:
  LibraryKernel(std::shared_ptr<Device> device, std::shared_ptr<const vendor::Plan> plan,
                std::optional<Bias> bias);
  std::size_t workspace() const override;
  std::unique_ptr<Launch> bind(const Binding& binding) const override;

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const vendor::Plan> plan_;
  std::optional<Bias> bias_;
};

}  // namespace plexaura::cuda
