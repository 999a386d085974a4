#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/device/backend.h"

namespace plexaura::fast {

// A kernel that is one function of its addresses.
class FunctionKernel final : public Kernel {
 public:
  using Function = std::function<void(const Binding&)>;
  explicit FunctionKernel(Function function)
      : function_(std::make_shared<const Function>(std::move(function))) {}

  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<FunctionLaunch>(function_, binding);
  }

 private:
  class FunctionLaunch final : public Launch {
   public:
    FunctionLaunch(std::shared_ptr<const Function> function, Binding binding)
        : function_(std::move(function)), binding_(std::move(binding)) {}
    void run() override { (*function_)(binding_); }

   private:
    std::shared_ptr<const Function> function_;
    Binding binding_;
  };

  std::shared_ptr<const Function> function_;
};

inline std::shared_ptr<const Kernel> make_kernel(FunctionKernel::Function function) {
  return std::make_shared<FunctionKernel>(std::move(function));
}

inline float* floats(Address address) { return reinterpret_cast<float*>(address); }

}  // namespace plexaura::fast
