#include "distributed/summing/all_reduce.h"

#include <utility>

namespace plexaura {
namespace {

class WindowMemory final : public Memory {
 public:
  explicit WindowMemory(std::shared_ptr<SharedWindow> window) : window_(std::move(window)) {}
  Address address() const override { return window_->data(); }
  std::size_t bytes() const override { return window_->bytes(); }

 private:
  std::shared_ptr<SharedWindow> window_;
};

}  // namespace

std::unique_ptr<Memory> AllReduce::gradient_memory(std::size_t bytes) {
  window_ = std::make_shared<SharedWindow>(communicator().allocate_shared(bytes, "the gradient arena"));
  return std::make_unique<WindowMemory>(window_);
}

void AllReduce::sum(std::size_t, DType dtype, std::span<std::byte> gradients, std::string_view what) {
  const auto count = static_cast<std::int64_t>(gradients.size() / size_of(dtype));
  // Without a window, the gradients are a host copy of device memory.
  if (!window_) return communicator().sum(dtype, gradients.data(), count, what);
  const auto offset = static_cast<std::size_t>(gradients.data() - window_->data());
  communicator().sum_window(*window_, offset, dtype, count, what);
}

}  // namespace plexaura
