#pragma once

#include <memory>
#include <optional>

#include "backends/cuda/engine/device.h"
#include "backends/cuda/vendor/vendor.h"

namespace plexaura::cuda {

// A convolution's bias, which a kernel of our own adds after the library's work.
struct Bias {
  std::shared_ptr<const Op> op;
  std::size_t input;  // index of the bias among the op's inputs
  TensorType type;
  TensorType result;
  bool channels_last = false;
};

// A kernel that runs a plan of a library.
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
