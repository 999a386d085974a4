#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cuda/kernels/call.h"
#include "core/tensor/dtype.h"

// Chains of elementwise ops, which one launch computes: what is done to an element is a short list of steps, which the kernel
// goes through for each. Several chains that do not depend on each other may share a launch.

namespace plexaura::cuda {

// What a step does: the ops with a functor in core/ops/functors.h, and two more.
enum class StepFunction : std::uint8_t {
  cast,
  where,
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) name,
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) name,
#include "core/ops/ops.def"
};

// Empty for an op that is none of them.
std::optional<StepFunction> step_function(std::string_view op_name);

// One op of a chain. Its result is rounded to its dtype, as if it had been stored.
struct Step {
  StepFunction function;
  DType dtype;
  std::uint8_t
      operands[3];  // numbers of values: those that are read come first, then the results of the steps
  double options[2];
};

struct ChainOperand {
  std::size_t input;  // of the region
  bool is_scalar;     // one element for all
};

// The last step's result is the chain's, and the region's output of the chain's number.
struct Chain {
  std::vector<ChainOperand> operands;
  std::vector<Step> steps;
};

// What fits into a launch of one chain, and into one of several.
struct ChainLimits {
  std::size_t chains;
  std::size_t steps;     // of all
  std::size_t operands;  // of all
};
constexpr ChainLimits one_chain{1, 12, 10};
constexpr ChainLimits several_chains{64, 128, 256};
constexpr std::size_t most_values = one_chain.steps + one_chain.operands;  // of a chain

// Floats of 16 and 32 bits and bools, or, where any is float64, float64 and bools.
void enqueue_chains(const Call& call, const std::vector<Chain>& chains);

}  // namespace plexaura::cuda
