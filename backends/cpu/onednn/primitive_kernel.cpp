#include "backends/cpu/onednn/primitive_kernel.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "backends/cpu/fast/copy/copy.h"
#include "core/base/error.h"

namespace plexaura::onednn {

namespace {

Address address_of(const Argument& argument, const Binding& binding) {
  switch (argument.space) {
    case Argument::Space::input:
      return binding.inputs[argument.index];
    case Argument::Space::output:
      return binding.outputs[argument.index];
    case Argument::Space::workspace:
      return binding.workspace == nullptr ? nullptr : binding.workspace + argument.index;
  }
  return nullptr;
}

class BoundPrimitive {
 public:
  BoundPrimitive(const Step& step, const Binding& binding) : primitive_(step.primitive) {
    for (const Argument& argument : step.arguments)
      if (Address address = address_of(argument, binding); address != nullptr) {
        memories_.emplace_back(argument.desc, cpu_engine(), address);
        arguments_.push_back({argument.number, memories_.back().get()});
      }
  }

  const_dnnl_primitive_t primitive() const { return primitive_.get(); }
  std::span<const dnnl_exec_arg_t> arguments() const { return arguments_; }

 private:
  dnnl::primitive primitive_;
  std::vector<memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

class PrimitiveLaunch final : public Launch {
 public:
  PrimitiveLaunch(const std::vector<Step>& steps, const Binding& binding) : name_(binding.name) {
    for (const Step& step : steps) steps_.emplace_back(step, binding);
  }

  void copy_first(const std::byte* src, std::byte* dst, std::size_t bytes) {
    src_ = src;
    dst_ = dst;
    bytes_ = src == dst ? 0 : bytes;
  }

  void run() override {
    if (bytes_ > 0) fast::copy_bytes(src_, dst_, bytes_);
    for (const BoundPrimitive& step : steps_) {
      // Calls the function of the C interface, because the function of the C++ interface makes a list of the
      // arguments in each call.
      const dnnl_status_t status =
          dnnl_primitive_execute(step.primitive(), cpu_stream().get(),
                                 static_cast<int>(step.arguments().size()), step.arguments().data());
      if (status != dnnl_success)
        throw DeviceError(fmt::format("{}: oneDNN failed with status {}",
                                      name_ != nullptr ? *name_ : "a kernel", static_cast<int>(status)));
    }
  }

 private:
  const std::string* name_;
  std::vector<BoundPrimitive> steps_;
  const std::byte* src_ = nullptr;
  std::byte* dst_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace

PrimitiveKernel::PrimitiveKernel(dnnl::primitive primitive, std::vector<Argument> arguments)
    : PrimitiveKernel({{std::move(primitive), std::move(arguments)}}) {}

PrimitiveKernel::PrimitiveKernel(std::vector<Step> steps, std::optional<StartFrom> start)
    : steps_(std::move(steps)), start_(start) {}

std::size_t PrimitiveKernel::workspace() const {
  std::size_t bytes = 0;
  for (const Step& step : steps_)
    for (const Argument& argument : step.arguments)
      if (argument.space == Argument::Space::workspace)
        bytes = std::max(bytes, argument.index + argument.desc.get_size());
  return bytes;
}

std::unique_ptr<Launch> PrimitiveKernel::bind(const Binding& binding) const {
  auto launch = std::make_unique<PrimitiveLaunch>(steps_, binding);
  if (start_) launch->copy_first(binding.inputs[start_->input], binding.outputs[0], start_->bytes);
  return launch;
}

}  // namespace plexaura::onednn
