#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/onednn/dnnl_compat.h"
#include "core/device/backend.h"

namespace plexaura::onednn {

// An argument of a primitive: which one, what it looks like, and which operand of the region it is.
struct Argument {
  enum class Space : std::uint8_t { input, output, workspace };
  int number;  // DNNL_ARG_...
  memory::desc desc;
  Space space;
  std::size_t index = 0;
};

// A primitive as a kernel. Binding makes the memory objects and the argument map, once; a run is one execute.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(dnnl::primitive primitive, std::vector<Argument> arguments);

  // Before each run, input `input` is copied to output 0 where they lie apart: for a primitive that adds to
  // its destination.
  void start_from(std::size_t input, std::size_t bytes);

  std::unique_ptr<Launch> bind(const Binding& binding) const override;

 private:
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  std::size_t start_input_ = 0;
  std::size_t start_bytes_ = 0;
};

// The scratch memory that a primitive asks for, as an argument.
template <class PrimitiveDesc>
Argument scratchpad_of(const PrimitiveDesc& primitive) {
  return {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc(), Argument::Space::workspace};
}

}  // namespace plexaura::onednn
