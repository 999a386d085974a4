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
  FunctionKernel(Function function, std::size_t workspace)
      : function_(std::make_shared<const Function>(std::move(function))), workspace_(workspace) {}

  std::size_t workspace() const override { return workspace_; }
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
  std::size_t workspace_;
};

// `workspace` in bytes.
inline std::shared_ptr<const Kernel> make_kernel(FunctionKernel::Function function,
                                                 std::size_t workspace = 0) {
  return std::make_shared<FunctionKernel>(std::move(function), workspace);
}

inline float* floats(Address address) { return reinterpret_cast<float*>(address); }

}  // namespace plexaura::fast
