#include "backends/cpu/fast/elementwise/elementwise_ops.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/fast/elementwise/cast_loops.h"
#include "backends/cpu/fast/elementwise/elementwise_loops.h"
#include "backends/cpu/fast/elementwise/typed_loops.h"
#include "core/ops/elementwise.h"

namespace plexaura::fast {

namespace {

// The least time for an element: if data leave the cache, all functions take this long.
constexpr double nanoseconds_from_memory = 0.25;
constexpr double nanoseconds_per_operation = 0.025;
constexpr double nanoseconds_per_conversion = 0.1;  // time to convert an element from or to 16 bits

constexpr std::int64_t block = 512;  // elements that the caches keep
constexpr std::size_t most_bytes = sizeof(double);

std::optional<Elementwise> unary(const Op& op) {
  const UnaryLoops* loops = find_unary(op.name());
  if (loops == nullptr) return std::nullopt;
  const auto inner = [loop = loops->loop, options = op_cast<FunctionOp>(op).options().values](
                         const std::byte* const* x, const std::int64_t*, std::byte* y, std::int64_t count) {
    loop(reinterpret_cast<const float*>(x[0]), reinterpret_cast<float*>(y), count, options.data());
  };
  return Elementwise{inner, loops->operations * nanoseconds_per_operation + nanoseconds_from_memory, 1};
}

std::optional<Elementwise> binary(const Op& op) {
  const BinaryLoops* loops = find_binary(op.name());
  if (loops == nullptr) return std::nullopt;
  const auto inner = [loops, options = op_cast<FunctionOp>(op).options().values](
                         const std::byte* const* x, const std::int64_t* steps, std::byte* y,
                         std::int64_t count) {
    const BinaryLoop loop = steps[0] == 0 ? loops->scalar_a : steps[1] == 0 ? loops->scalar_b : loops->both;
    loop(reinterpret_cast<const float*>(x[0]), reinterpret_cast<const float*>(x[1]), y, count,
         options.data());
  };
  return Elementwise{inner, loops->operations * nanoseconds_per_operation + 2 * nanoseconds_from_memory, 2};
}

// A loop on arrays, and the bytes of an element of each operand and of the result.
struct ArrayLoop {
  TypedLoop loop;
  std::size_t operands;
  std::array<std::size_t, most_operands> bytes{};
  std::size_t result_bytes;
  std::vector<double> options;
};

// Calls the loop for blocks, and repeats operands of one element in arrays as long as a block.
Inner on_blocks(ArrayLoop of) {
  return [of = std::move(of)](const std::byte* const* x, const std::int64_t* steps, std::byte* y,
                              std::int64_t count) {
    if (std::all_of(steps, steps + of.operands, [](std::int64_t step) { return step != 0; }))
      return of.loop(x, y, count, of.options.data());
    alignas(64) std::byte repeated[most_operands][block * most_bytes];
    const std::byte* at[most_operands] = {};
    for (std::size_t i = 0; i < of.operands; ++i)
      if (steps[i] == 0) repeat(x[i], of.bytes[i], repeated[i], std::min(block, count));
    for (std::int64_t begin = 0; begin < count; begin += block) {
      for (std::size_t i = 0; i < of.operands; ++i)
        at[i] = steps[i] == 0 ? repeated[i] : x[i] + begin * static_cast<std::int64_t>(of.bytes[i]);
      of.loop(at, y + begin * static_cast<std::int64_t>(of.result_bytes), std::min(block, count - begin),
              of.options.data());
    }
  };
}

std::optional<Elementwise> where(const RegionQuery& query) {
  if (query.region.kind != "where") return std::nullopt;
  const std::size_t bytes = size_of(query.type(query.region.outputs[0]).dtype);
  return Elementwise{on_blocks({where_loop(bytes), 3, {1, bytes, bytes}, bytes, {}}),
                     2 * nanoseconds_from_memory, 3, true};
}

std::optional<Elementwise> stretch(const RegionQuery& query) {
  if (query.region.kind != "broadcast_to") return std::nullopt;
  const std::size_t bytes = size_of(query.type(query.region.outputs[0]).dtype);
  const auto inner = [bytes](const std::byte* const* x, const std::int64_t* steps, std::byte* y,
                             std::int64_t count) {
    if (steps[0] == 0)
      repeat(x[0], bytes, y, count);
    else
      std::memcpy(y, x[0], static_cast<std::size_t>(count) * bytes);
  };
  return Elementwise{inner, nanoseconds_from_memory, 1};
}

Elementwise masked() {
  const auto inner = [](const std::byte* const* x, const std::int64_t*, std::byte* y, std::int64_t count) {
    mask_loop(reinterpret_cast<const float*>(x[0]), reinterpret_cast<const float*>(x[1]),
              reinterpret_cast<float*>(y), count);
  };
  return {inner, 2 * nanoseconds_from_memory, 2};
}

std::optional<Elementwise> cast_op(const RegionQuery& query) {
  if (query.region.kind != "cast") return std::nullopt;
  const CastLoop loop =
      find_cast(query.type(query.region.inputs[0]).dtype, query.type(query.region.outputs[0]).dtype);
  if (loop == nullptr) return std::nullopt;
  const auto inner = [loop](const std::byte* const* x, const std::int64_t*, std::byte* y,
                            std::int64_t count) { loop(x[0], y, count); };
  return Elementwise{inner, nanoseconds_from_memory, 1};
}

// Returns the op on float32, whatever the dtype of the operands is.
std::optional<Elementwise> in_float32(const RegionQuery& query) {
  if (query.region.kind == relu_mask) return masked();
  const Op& op = query.op();
  if (auto found = unary(op)) return found;
  return binary(op);
}

// Returns the op on a dtype that is neither float32 nor converted to it.
std::optional<Elementwise> in_own_dtype(const RegionQuery& query, DType dtype) {
  if (query.region.nodes.size() != 1) return std::nullopt;
  const TypedLoops* loops = find_typed(query.op().name(), dtype);
  if (loops == nullptr) return std::nullopt;
  const std::size_t bytes = size_of(dtype);
  return Elementwise{on_blocks({loops->loop,
                                loops->operands,
                                {bytes, bytes},
                                size_of(query.type(query.region.outputs[0]).dtype),
                                op_cast<FunctionOp>(query.op()).options().values}),
                     nanoseconds_per_operation + 2 * nanoseconds_from_memory, loops->operands, true};
}

// The conversions around a loop on float32, for operands of 16 bits. Null where nothing needs a conversion.
struct Conversions {
  std::array<CastLoop, most_operands> widen{};
  CastLoop narrow = nullptr;
};

// Converts blocks of the operands to float32, and the results back.
Elementwise converted(const Elementwise& op, const Conversions& by) {
  const auto inner = [of_floats = op.inner, operands = op.operands, by](const std::byte* const* x,
                                                                        const std::int64_t* steps,
                                                                        std::byte* y, std::int64_t count) {
    float wide[most_operands][block];
    float result[block];
    for (std::int64_t begin = 0; begin < count; begin += block) {
      const std::int64_t size = std::min(block, count - begin);
      const std::byte* blocks[most_operands] = {};
      for (std::size_t i = 0; i < operands; ++i) {
        blocks[i] = x[i] + 2 * begin * steps[i];
        auto* target = reinterpret_cast<std::byte*>(wide[i]);
        if (begin == 0 || steps[i] != 0) by.widen[i](blocks[i], target, steps[i] == 0 ? 1 : size);
        blocks[i] = target;
      }
      if (by.narrow == nullptr) {
        of_floats(blocks, steps, y + begin, size);
      } else {
        of_floats(blocks, steps, reinterpret_cast<std::byte*>(result), size);
        by.narrow(reinterpret_cast<const std::byte*>(result), y + 2 * begin, size);
      }
    }
  };
  return {inner, op.nanoseconds + nanoseconds_per_conversion * static_cast<double>(op.operands + 1),
          op.operands};
}

bool is_half(DType dtype) { return dtype == DType::bfloat16 || dtype == DType::float16; }

// Returns the op on operands of 16 bits.
std::optional<Elementwise> in_16_bits(const RegionQuery& query, DType dtype) {
  const auto op = in_float32(query);
  if (!op) return std::nullopt;
  Conversions by;
  by.widen.fill(find_cast(dtype, DType::float32));
  if (query.type(query.region.outputs[0]).dtype == dtype) by.narrow = find_cast(DType::float32, dtype);
  return converted(*op, by);
}

}  // namespace

void repeat(const std::byte* element, std::size_t bytes, std::byte* to, std::int64_t count) {
  const auto fill = [&]<class Bits>(Bits bits) {
    std::memcpy(&bits, element, sizeof(Bits));
    std::fill_n(reinterpret_cast<Bits*>(to), count, bits);
  };
  if (bytes == 1) fill(std::uint8_t{});
  if (bytes == 2) fill(std::uint16_t{});
  if (bytes == 4) fill(std::uint32_t{});
  if (bytes == 8) fill(std::uint64_t{});
}

std::optional<Elementwise> elementwise_of(const RegionQuery& query) {
  if (auto cast = cast_op(query)) return cast;
  if (auto chosen = where(query)) return chosen;
  if (auto stretched = stretch(query)) return stretched;
  if (query.region.kind != relu_mask && query.region.nodes.size() != 1) return std::nullopt;
  const auto& inputs = query.region.inputs;
  if (inputs.empty()) return std::nullopt;
  const DType dtype = query.type(inputs[0]).dtype;
  if (std::ranges::any_of(inputs, [&](Value input) { return query.type(input).dtype != dtype; }))
    return std::nullopt;
  if (dtype == DType::float32) return in_float32(query);
  return is_half(dtype) ? in_16_bits(query, dtype) : in_own_dtype(query, dtype);
}

std::optional<Elementwise> elementwise_of(const Graph& graph, NodeId node) {
  const Region region = single(graph, node);
  return elementwise_of({graph, region, {}, {}});
}

std::vector<Layout> layouts_like_result(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < query.given.size(); ++i)
    if (query.given[i] && query.type(query.region.inputs[i]).shape == shape &&
        std::ranges::find(layouts, *query.given[i]) == layouts.end())
      layouts.push_back(*query.given[i]);
  return layouts;
}

}  // namespace plexaura::fast
