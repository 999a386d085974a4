#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cuda/kernels/call.h"
#include "core/tensor/dtype.h"

// Chains of elementwise ops, which one launch computes. A chain is a short list of steps, and the kernel runs
// all of them for each element. Chains that do not depend on each other may share a launch.

namespace plexaura::cuda {

// The function of a step: an op with a functor in core/ops/functors.h, a cast, or a where.
enum class StepFunction : std::uint8_t {
  cast,
  where,
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) name,
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) name,
#include "core/ops/ops.def"
};

// Returns the function of an op. Returns nothing for an op that cannot be a step.
std::optional<StepFunction> step_function(std::string_view op_name);

// One op of a chain. Its result is rounded to its dtype, as if it had been stored.
struct Step {
  StepFunction function;
  DType dtype;
  // Indices of values: the operands of the chain come first, followed by the results of the steps.
  std::uint8_t operands[3];
  double options[2];
};

struct ChainOperand {
  std::size_t input;  // index of the region's input
  bool is_scalar;     // true if one element stands for all
};

// A chain's result is that of its last step. Chain i computes output i of the region.
struct Chain {
  std::vector<ChainOperand> operands;
  std::vector<Step> steps;
};

// The sizes that fit into a launch of one chain, and into a launch of several.
struct ChainLimits {
  std::size_t chains;
  std::size_t steps;     // number of steps of all chains together
  std::size_t operands;  // number of operands of all chains together
};
constexpr ChainLimits one_chain{1, 12, 10};
constexpr ChainLimits several_chains{64, 128, 256};
// Largest number of values of a chain.
constexpr std::size_t most_values = one_chain.steps + one_chain.operands;

// Enqueues the chains. Values are floats of 16 and 32 bits and bools or, if one is float64, float64 and
// bools.
void enqueue_chains(const Call& call, const std::vector<Chain>& chains);

}  // namespace plexaura::cuda
