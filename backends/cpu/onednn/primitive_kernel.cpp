#include "backends/cpu/onednn/primitive_kernel.h"

#include <fmt/format.h>

#include "backends/cpu/fast/copy.h"
#include "core/error.h"

namespace plexaura::onednn {

namespace {

Address address_of(const Argument& argument, const Binding& binding) {
  switch (argument.space) {
    case Argument::Space::input:
      return binding.inputs[argument.index];
    case Argument::Space::output:
      return binding.outputs[argument.index];
    case Argument::Space::workspace:
      return binding.workspace;
  }
  return nullptr;
}

class PrimitiveLaunch final : public Launch {
 public:
  PrimitiveLaunch(dnnl::primitive primitive, const std::vector<Argument>& arguments, const Binding& binding)
      : primitive_(std::move(primitive)), name_(binding.name) {
    for (const Argument& argument : arguments)
      if (Address address = address_of(argument, binding); address != nullptr) {
        memories_.emplace_back(argument.desc, cpu_engine(), address);
        arguments_.push_back({argument.number, memories_.back().get()});
      }
  }

  void copy_first(const std::byte* src, std::byte* dst, std::size_t bytes) {
    src_ = src;
    dst_ = dst;
    bytes_ = src == dst ? 0 : bytes;
  }

  void run() override {
    if (bytes_ > 0) fast::copy_bytes(src_, dst_, bytes_);
    // The C function, because the one of C++ makes a list of the arguments in each call.
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), cpu_stream().get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status != dnnl_success)
      throw DeviceError(fmt::format("{}: oneDNN failed with status {}",
                                    name_ != nullptr ? *name_ : "a kernel", static_cast<int>(status)));
  }

 private:
  dnnl::primitive primitive_;
  const std::string* name_;
  std::vector<memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  const std::byte* src_ = nullptr;
  std::byte* dst_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace

PrimitiveKernel::PrimitiveKernel(dnnl::primitive primitive, std::vector<Argument> arguments)
    : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}

void PrimitiveKernel::start_from(std::size_t input, std::size_t bytes) {
  start_input_ = input;
  start_bytes_ = bytes;
}

std::unique_ptr<Launch> PrimitiveKernel::bind(const Binding& binding) const {
  auto launch = std::make_unique<PrimitiveLaunch>(primitive_, arguments_, binding);
  if (start_bytes_ > 0) launch->copy_first(binding.inputs[start_input_], binding.outputs[0], start_bytes_);
  return launch;
}

}  // namespace plexaura::onednn
