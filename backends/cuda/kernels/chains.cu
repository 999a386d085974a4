#include <algorithm>

#include "backends/cuda/kernels/chains.h"
#include "backends/cuda/kernels/element.h"
#include "core/ops/functors.h"

namespace plexaura::cuda {

// A value whose dtype is known only at run time.
template <class Bytes>
struct Untyped {
  Global<Bytes> bytes;
  DType dtype = DType::float32;
};

// Reads an element as R, the type in which all values of a chain are computed: float or double.
template <class R>
struct ReadOperand {
  Untyped<const std::byte> from;
  bool is_scalar = false;

  PLEXAURA_DEVICE R operator()(std::int64_t i) const {
    const std::int64_t place = is_scalar ? 0 : i;
    switch (from.dtype) {
      case DType::boolean:
        return from.bytes.template as<bool>(place) ? R(1) : R(0);
      case DType::bfloat16:
        return static_cast<R>(widen(from.bytes.template as<bfloat16>(place)));
      case DType::float16:
        return static_cast<R>(widen(from.bytes.template as<float16>(place)));
      case DType::float32:
        return static_cast<R>(from.bytes.template as<float>(place));
      default:
        return from.bytes.template as<R>(place);  // only chains that are computed in double read float64
    }
  }
};

template <class R>
struct WrittenResult {
  Untyped<std::byte> to;

  PLEXAURA_DEVICE void write(std::int64_t i, R value) const {
    switch (to.dtype) {
      case DType::boolean:
        to.bytes.template as<bool>(i) = value != R(0);
        break;
      case DType::bfloat16:
        to.bytes.template as<bfloat16>(i) = narrow<bfloat16>(value);
        break;
      case DType::float16:
        to.bytes.template as<float16>(i) = narrow<float16>(value);
        break;
      case DType::float32:
        to.bytes.template as<float>(i) = static_cast<float>(value);
        break;
      default:
        to.bytes.template as<R>(i) = value;
    }
  }
};

// Returns the value as if it had been stored and read again.
template <class R>
PLEXAURA_DEVICE inline R rounded(R value, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return value != R(0) ? R(1) : R(0);
    case DType::bfloat16:
      return static_cast<R>(widen(narrow<bfloat16>(value)));
    case DType::float16:
      return static_cast<R>(widen(narrow<float16>(value)));
    default:
      return value;
  }
}

template <class R>
PLEXAURA_DEVICE inline R result_of(const Step& step, R a, R b, R c) {
  switch (step.function) {
    case StepFunction::cast:
      return a;
    case StepFunction::where:
      return a != R(0) ? b : c;
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) \
  case StepFunction::name:                  \
    return functors::Functor<R, Math>(step.options)(a);
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) \
  case StepFunction::name:                           \
    return static_cast<R>(functors::Functor<R, Math>(step.options)(a, b));
#include "core/ops/ops.def"
  }
  return a;
}

// The operands and steps of one chain, and the blocks that compute it.
template <class R>
struct ChainPart {
  int first_operand = 0;
  int operands = 0;
  int first_step = 0;
  int steps = 0;
  std::int64_t first_block = 0;
  std::int64_t blocks = 0;
  std::int64_t count = 0;  // number of elements of the result
  WrittenResult<R> result;
};

template <class R, int most_chains, int most_steps, int most_operands>
struct ChainsKernel {
  int chains = 0;
  ChainPart<R> parts[most_chains];
  Step steps[most_steps];
  ReadOperand<R> operands[most_operands];

  PLEXAURA_DEVICE int chain_of(std::int64_t block) const {
    int chain = 0;
    while (block >= parts[chain].first_block + parts[chain].blocks) ++chain;
    return chain;
  }

  PLEXAURA_DEVICE R result(const ChainPart<R>& of, std::int64_t i) const {
    R values[most_values];
    for (int k = 0; k < of.operands; ++k) values[k] = operands[of.first_operand + k](i);
    int count = of.operands;
    for (int k = of.first_step; k < of.first_step + of.steps; ++k) {
      const Step& step = steps[k];
      const R value =
          result_of<R>(step, values[step.operands[0]], values[step.operands[1]], values[step.operands[2]]);
      values[count++] = rounded(value, step.dtype);
    }
    return values[count - 1];
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const ChainPart<R>& of = parts[chain_of(block.index())];
    block.each_thread([&](int thread) {
      for (std::int64_t i = (block.index() - of.first_block) * threads + thread; i < of.count;
           i += of.blocks * threads)
        of.result.write(i, result(of, i));
    });
  }
};

namespace {

struct Entry {
  std::string_view op;
  StepFunction function;
};

constexpr Entry entries[] = {
    {"cast", StepFunction::cast},
    {"where", StepFunction::where},
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) {#name, StepFunction::name},
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) {#name, StepFunction::name},
#include "core/ops/ops.def"
};

template <class R, int most_chains, int most_steps, int most_operands>
void enqueue_in(const Call& call, const std::vector<Chain>& chains) {
  ChainsKernel<R, most_chains, most_steps, most_operands> kernel{};
  std::int64_t blocks = 0;
  int steps = 0;
  int operands = 0;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const Chain& chain = chains[i];
    const View& result = call.outputs[i];
    ChainPart<R>& part = kernel.parts[kernel.chains++];
    part = {operands,
            static_cast<int>(chain.operands.size()),
            steps,
            static_cast<int>(chain.steps.size()),
            blocks,
            result.address != nullptr ? blocks_for(result.elements()) : 0,
            result.elements(),
            {{{result.address, result.type->bytes()}, result.dtype()}}};
    blocks += part.blocks;
    for (const Step& step : chain.steps) kernel.steps[steps++] = step;
    for (const ChainOperand& operand : chain.operands) {
      const View& view = call.inputs[operand.input];
      kernel.operands[operands++] = {{{view.address, view.type->bytes()}, view.dtype()}, operand.is_scalar};
    }
  }
  enqueue(call, blocks, kernel);
}

template <class R>
void enqueue_as(const Call& call, const std::vector<Chain>& chains) {
  if (chains.size() == 1)
    enqueue_in<R, one_chain.chains, one_chain.steps, one_chain.operands>(call, chains);
  else
    enqueue_in<R, several_chains.chains, several_chains.steps, several_chains.operands>(call, chains);
}

}  // namespace

std::optional<StepFunction> step_function(std::string_view op_name) {
  const auto* const found = std::ranges::find(entries, op_name, &Entry::op);
  return found == std::end(entries) ? std::nullopt : std::optional(found->function);
}

void enqueue_chains(const Call& call, const std::vector<Chain>& chains) {
  const auto is_wide = [](const View& view) { return view.dtype() == DType::float64; };
  if (std::ranges::any_of(call.inputs, is_wide) || std::ranges::any_of(call.outputs, is_wide))
    enqueue_as<double>(call, chains);
  else
    enqueue_as<float>(call, chains);
}

}  // namespace plexaura::cuda
