#include <algorithm>

#include "backends/cuda/kernels/chains.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/several.h"
#include "core/ops/functors.h"

namespace plexaura::cuda {

// The number of elements that a thread computes at once: eight of 16 bits are 16 bytes.
template <class R>
inline constexpr int chain_width = sizeof(R) == 4 ? 8 : 2;

// A value whose dtype is known only at run time.
template <class Bytes>
struct Untyped {
  Global<Bytes> bytes;
  DType dtype = DType::float32;
};

// Reads elements as R, the type in which all values of a chain are computed: float or double.
template <class R>
struct ReadOperand {
  Untyped<const std::byte> from;
  bool is_scalar = false;

  template <int width>
  PLEXAURA_DEVICE Several<R, width> read(std::int64_t i) const {
    if (!is_scalar) return several<width>(i);
    const R value = several<1>(0)[0];
    Several<R, width> same;
    for (int k = 0; k < width; ++k) same[k] = value;
    return same;
  }

 private:
  template <int width>
  PLEXAURA_DEVICE Several<R, width> several(std::int64_t i) const {
    switch (from.dtype) {
      case DType::boolean:
        return read_as<bool, width>(i);
      case DType::bfloat16:
        return read_as<bfloat16, width>(i);
      case DType::float16:
        return read_as<float16, width>(i);
      case DType::float32:
        return read_as<float, width>(i);
      default:
        return read_as<R, width>(i);  // only chains that are computed in double read float64
    }
  }

  template <class T, int width>
  PLEXAURA_DEVICE Several<R, width> read_as(std::int64_t i) const {
    const auto elements = from.bytes.template several<width, T>(i);
    Several<R, width> values;
    for (int k = 0; k < width; ++k) values[k] = static_cast<R>(widen(elements[k]));
    return values;
  }
};

template <class R>
struct WrittenResult {
  Untyped<std::byte> to;

  template <int width>
  PLEXAURA_DEVICE void write(std::int64_t i, const Several<R, width>& values) const {
    switch (to.dtype) {
      case DType::boolean:
        return write_as<bool>(i, values);
      case DType::bfloat16:
        return write_as<bfloat16>(i, values);
      case DType::float16:
        return write_as<float16>(i, values);
      case DType::float32:
        return write_as<float>(i, values);
      default:
        return write_as<R>(i, values);
    }
  }

 private:
  template <class T, int width>
  PLEXAURA_DEVICE void write_as(std::int64_t i, const Several<R, width>& values) const {
    Several<T, width> elements;
    for (int k = 0; k < width; ++k) elements[k] = convert<T>(values[k]);
    to.bytes.set_several(i, elements);
  }
};

// Returns the values as if they had been stored as T and read again.
template <class T, class R, int width>
PLEXAURA_DEVICE inline Several<R, width> rounded_to(const Several<R, width>& values) {
  Several<R, width> rounded;
  for (int k = 0; k < width; ++k) rounded[k] = static_cast<R>(widen(convert<T>(values[k])));
  return rounded;
}

template <class R, int width>
PLEXAURA_DEVICE inline Several<R, width> rounded(DType dtype, const Several<R, width>& values) {
  switch (dtype) {
    case DType::boolean:
      return rounded_to<bool>(values);
    case DType::bfloat16:
      return rounded_to<bfloat16>(values);
    case DType::float16:
      return rounded_to<float16>(values);
    default:
      return values;
  }
}

// Returns f(values[k]...) for each element. Reads all elements of the values at once.
template <class R, int width, class F, class... Values>
PLEXAURA_DEVICE inline Several<R, width> at_once(const F& f, const Values... values) {
  Several<R, width> y;
  for (int k = 0; k < width; ++k) y[k] = static_cast<R>(f(values[k]...));
  return y;
}

// The same for a function of `cost` operations. Long code is not repeated for each element.
template <int cost, class F, class R, int width, class... Values>
PLEXAURA_DEVICE inline Several<R, width> each(const F& f, const Several<R, width>& first,
                                              const Values&... others) {
  if constexpr (cost <= 2) {
    return at_once<R, width>(f, first, others...);
  } else {
    Several<R, width> y;
    PLEXAURA_ROLLED
    for (int k = 0; k < width; ++k) y[k] = static_cast<R>(f(first[k], others[k]...));
    return y;
  }
}

template <class R, int width>
PLEXAURA_DEVICE inline Several<R, width> result_of(StepFunction function, const double* options,
                                                   const Several<R, width>& a, const Several<R, width>& b,
                                                   const Several<R, width>& c) {
  switch (function) {
    case StepFunction::cast:
      return a;
    case StepFunction::where:
      return each<1>([](R x, R y, R z) { return x != R(0) ? y : z; }, a, b, c);
#define PLEXAURA_OP(name)
#define PLEXAURA_UNARY(name, Functor, cost) \
  case StepFunction::name:                  \
    return each<cost>(functors::Functor<R, Math>(options), a);
#define PLEXAURA_BINARY(name, Functor, dtypes, cost) \
  case StepFunction::name:                           \
    return each<cost>(functors::Functor<R, Math>(options), a, b);
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
  bool is_wide = false;    // true if the operands are aligned for several elements at once
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

  template <int width>
  PLEXAURA_DEVICE void compute(const ChainPart<R>& of, std::int64_t i) const {
    Several<R, width> values[most_values];
    for (int k = 0; k < of.operands; ++k) values[k] = operands[of.first_operand + k].template read<width>(i);
    int count = of.operands;
    for (int k = of.first_step; k < of.first_step + of.steps; ++k) {
      const Step& step = steps[k];
      const Several<R, width> result = result_of(step.function, step.options, values[step.operands[0]],
                                                 values[step.operands[1]], values[step.operands[2]]);
      values[count++] = rounded(step.dtype, result);
    }
    of.result.write(i, values[count - 1]);
  }

  // Computes the elements from `begin` on, `width` at once as far as possible. Returns the number of the first one that
  // is left.
  template <int width>
  PLEXAURA_DEVICE std::int64_t compute_all(const ChainPart<R>& of, std::int64_t begin,
                                           std::int64_t thread) const {
    const std::int64_t groups = (of.count - begin) / width;
    PLEXAURA_ROLLED
    for (std::int64_t group = thread; group < groups; group += of.blocks * threads)
      compute<width>(of, begin + group * width);
    return begin + groups * width;
  }

  PLEXAURA_DEVICE void operator()(Block& block) const {
    const ChainPart<R>& of = parts[chain_of(block.index())];
    block.each_thread([&](int thread) {
      const std::int64_t of_chain = (block.index() - of.first_block) * threads + thread;
      const std::int64_t begin = of.is_wide ? compute_all<chain_width<R>>(of, 0, of_chain) : 0;
      compute_all<1>(of, begin, of_chain);
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
    const bool is_wide =
        are_aligned(result) && std::ranges::all_of(chain.operands, [&](const ChainOperand& operand) {
          return operand.is_scalar || are_aligned(call.inputs[operand.input]);
        });
    ChainPart<R>& part = kernel.parts[kernel.chains++];
    part = {operands,
            static_cast<int>(chain.operands.size()),
            steps,
            static_cast<int>(chain.steps.size()),
            blocks,
            result.address != nullptr ? blocks_for_groups(result.elements(), chain_width<R>, is_wide) : 0,
            result.elements(),
            is_wide,
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
