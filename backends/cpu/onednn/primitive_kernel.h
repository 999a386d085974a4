#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/onednn/dnnl_compat.h"
#include "core/device/backend.h"

namespace plexaura::onednn {

// An argument of a primitive: which one, what it looks like, and which operand of the region it is, or where
// it begins in the workspace, in bytes.
struct Argument {
  enum class Space : std::uint8_t { input, output, workspace };
  int number;  // DNNL_ARG_...
  memory::desc desc;
  Space space;
  std::size_t index = 0;
};

struct Step {
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
};

// What output 0 holds before the first step, for a primitive that adds to its destination: a copy of an
// input, where that one lies elsewhere.
struct StartFrom {
  std::size_t input;
  std::size_t bytes;
};

// Primitives, one after the other, as a kernel. Binding makes the memory objects and the argument maps, once;
// a run is one execute for each.
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

// The scratch memory that a primitive asks for, as an argument.
template <class PrimitiveDesc>
Argument scratchpad_of(const PrimitiveDesc& primitive) {
  return {DNNL_ARG_SCRATCHPAD, primitive.scratchpad_desc(), Argument::Space::workspace};
}

// Whether an implementation is the library's plain code for everything that nothing else takes.
inline bool is_reference(const std::string& implementation) {
  return implementation.find("ref") != std::string::npos;
}

}  // namespace plexaura::onednn
