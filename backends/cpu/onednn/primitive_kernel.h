#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/onednn/dnnl_compat.h"
#include "core/device/backend.h"

namespace plexaura::onednn {

// An argument of a primitive: its number, its memory descriptor and its place. `index` is the index of the
// region's input or output, or an offset in the workspace in bytes.
struct Argument {
  enum class Space : std::uint8_t { input, output, workspace };
  int number;  // number of the argument: DNNL_ARG_...
  memory::desc desc;
  Space space;
  std::size_t index = 0;
};

struct Step {
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
};

// The start of a primitive that adds to its destination. The input is copied to output 0 before the first
// step, unless both share memory.
struct StartFrom {
  std::size_t input;
  std::size_t bytes;
};

// A kernel that runs primitives one after another. bind() makes the memory objects and the argument maps
// once, so that a run only executes each primitive.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(dnnl::primitive primitive, std::vector<Argument> arguments);
  explicit PrimitiveKernel(std::vector<Step> steps, std::optional<StartFrom> start = {});

  std::size_t workspace() const override;
  std::unique_ptr<Launch> bind(const Binding& binding) const override;

 private:
  std::vector<Step> steps_;
  std::optional<StartFrom> start_;
};

// Returns the scratch memory that a primitive needs, as an argument in the workspace.
template <class PrimitiveDesc>
Argument scratchpad_of(const PrimitiveDesc& primitive) {
  return {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc(), Argument::Space::workspace};
}

// True for the library's slow reference code. The library uses it if no other implementation supports the
// operands.
inline bool is_reference(const std::string& implementation) {
  return implementation.find("ref") != std::string::npos;
}

}  // namespace plexaura::onednn
