#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "backends/cpu/fast/channel_view.h"
#include "backends/cpu/fast/elementwise/cast_loops.h"
#include "backends/cpu/fast/elementwise/elementwise_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/loop_nest.h"
#include "backends/cpu/fast/padding_eraser.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/physical.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "backends/regions/relu_mask.h"
#include "core/ops/elementwise.h"

namespace plexaura::fast {

namespace {

// The least time for an element: if data leave the cache, all functions take this long.
constexpr double nanoseconds_from_memory = 0.25;
constexpr double nanoseconds_per_operation = 0.025;
constexpr double nanoseconds_per_conversion = 0.1;  // from or to 16 bits

// Calls an op's innermost loop, with the address of a piece of each operand, and the operand's step: 0 or 1.
using Inner = std::function<void(const std::byte* const* operands, const std::int64_t* steps, std::byte* y,
                                 std::int64_t count)>;

struct Elementwise {
  Inner inner;
  double nanoseconds;
  // The number of inputs read; the region's other inputs are constants that the loop contains
  std::size_t operands;
};

constexpr auto relu_mask = "gt+where";

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

std::optional<Elementwise> where(const Op& op) {
  if (op.name() != "where") return std::nullopt;
  const auto inner = [](const std::byte* const* x, const std::int64_t* steps, std::byte* y,
                        std::int64_t count) {
    where_loop(reinterpret_cast<const bool*>(x[0]), reinterpret_cast<const float*>(x[1]),
               reinterpret_cast<const float*>(x[2]), reinterpret_cast<float*>(y), count,
               {steps[0], steps[1], steps[2]});
  };
  return Elementwise{inner, 2 * nanoseconds_from_memory, 3};
}

std::optional<Elementwise> stretch(const Op& op) {
  if (op.name() != "broadcast_to") return std::nullopt;
  const auto inner = [](const std::byte* const* x, const std::int64_t* steps, std::byte* y,
                        std::int64_t count) {
    const auto* src = reinterpret_cast<const float*>(x[0]);
    auto* dst = reinterpret_cast<float*>(y);
    if (steps[0] == 0)
      std::fill_n(dst, count, *src);
    else
      std::copy_n(src, count, dst);
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
  if (query.region.nodes.size() != 1) return std::nullopt;
  const Op& op = query.op();
  if (auto found = stretch(op)) return found;
  if (auto found = unary(op)) return found;
  if (auto found = binary(op)) return found;
  return where(op);
}

constexpr std::size_t most_operands = 3;

// The conversions around a loop on float32, for operands of 16 bits. Null where nothing is to be converted.
struct Conversions {
  std::array<CastLoop, most_operands> widen{};
  CastLoop narrow = nullptr;
};

// Converts blocks of the operands to float32, which the caches keep, and the results back.
Elementwise converted(const Elementwise& op, const Conversions& by) {
  const auto inner = [of_floats = op.inner, operands = op.operands, by](const std::byte* const* x,
                                                                        const std::int64_t* steps,
                                                                        std::byte* y, std::int64_t count) {
    constexpr std::int64_t block = 512;
    float wide[most_operands][block];
    float result[block];
    for (std::int64_t begin = 0; begin < count; begin += block) {
      const std::int64_t size = std::min(block, count - begin);
      const std::byte* blocks[most_operands] = {};
      for (std::size_t i = 0; i < operands; ++i) {
        blocks[i] = x[i] + begin * steps[i] * (by.widen[i] == nullptr ? 1 : 2);
        if (by.widen[i] == nullptr) continue;
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

std::optional<Elementwise> elementwise_of(const RegionQuery& query) {
  if (auto cast = cast_op(query)) return cast;
  const auto op = in_float32(query);
  if (!op) return std::nullopt;
  Conversions by;
  for (std::size_t i = 0; i < op->operands; ++i)
    if (const DType dtype = query.type(query.region.inputs[i]).dtype; is_half(dtype))
      by.widen[i] = find_cast(dtype, DType::float32);
  if (const DType dtype = query.type(query.region.outputs[0]).dtype; is_half(dtype))
    by.narrow = find_cast(DType::float32, dtype);
  const bool converts = by.narrow != nullptr || std::ranges::any_of(by.widen, std::identity{});
  return converts ? converted(*op, by) : *op;
}

// True if the op's result for zeros is +0.
bool keeps_zero(const Elementwise& op) {
  constexpr std::array<std::byte, sizeof(double)> zero{};
  const std::array<const std::byte*, most_operands> operands{zero.data(), zero.data(), zero.data()};
  constexpr std::array<std::int64_t, most_operands> steps{1, 1, 1};
  std::array<std::byte, sizeof(double)> result{};
  op.inner(operands.data(), steps.data(), result.data(), 1);
  return result == zero;
}

// Runs a part of the nest. All loops but the innermost are counted as one, and each of its steps calls the
// inner loop once.
class NestedLaunch {
 public:
  NestedLaunch(LoopNest nest, std::vector<std::size_t> operand_bytes, std::size_t result_bytes,
               Elementwise op)
      : nest_(std::move(nest)),
        operand_bytes_(std::move(operand_bytes)),
        result_bytes_(result_bytes),
        op_(std::move(op)) {
    for (const auto& strides : nest_.strides) steps_.push_back(strides.back());
    for (std::size_t loop = 0; loop + 1 < nest_.extents.size(); ++loop) rows_ *= nest_.extents[loop];
  }

  void run(const Binding& binding) const {
    const std::int64_t width = nest_.extents.back();
    if (rows_ == 1)
      parallel_pieces(width, op_.nanoseconds, 64,
                      [&](std::int64_t begin, std::int64_t end) { row(binding, 0, begin, end); });
    else
      parallel_pieces(rows_, op_.nanoseconds * static_cast<double>(width),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t index = begin; index < end; ++index) row(binding, index, 0, width);
                      });
  }

 private:
  void row(const Binding& binding, std::int64_t index, std::int64_t begin, std::int64_t end) const {
    const std::byte* operands[most_operands];
    for (std::size_t i = 0; i < steps_.size(); ++i)
      operands[i] = binding.inputs[i] +
                    (offset(i, index) + begin * steps_[i]) * static_cast<std::int64_t>(operand_bytes_[i]);
    const std::int64_t place = index * nest_.extents.back() + begin;
    op_.inner(operands, steps_.data(), binding.outputs[0] + place * static_cast<std::int64_t>(result_bytes_),
              end - begin);
  }

  std::int64_t offset(std::size_t operand, std::int64_t index) const {
    std::int64_t sum = 0;
    for (std::size_t loop = nest_.extents.size() - 1; loop-- > 0;) {
      sum += index % nest_.extents[loop] * nest_.strides[operand][loop];
      index /= nest_.extents[loop];
    }
    return sum;
  }

  LoopNest nest_;
  std::vector<std::size_t> operand_bytes_;
  std::size_t result_bytes_;
  Elementwise op_;
  std::vector<std::int64_t> steps_;
  std::int64_t rows_ = 1;
};

bool is_fit(const RegionQuery& query) {
  if (!elementwise_of(query)) return false;
  if (!has_elements(query.graph, query.region.outputs[0])) return false;
  if (query.region.kind == "cast") return true;
  const bool selects = query.region.kind == "where";
  const DType dtype = query.type(query.region.inputs.back()).dtype;
  for (std::size_t i = 0; i < query.region.inputs.size(); ++i)
    if (!(selects && i == 0) && query.type(query.region.inputs[i]).dtype != dtype) return false;
  return dtype == DType::float32 || is_half(dtype);
}

// True if a value per channel is broadcast over pixels, as by the gradient of global pooling. The op that
// reads the result takes images too.
bool is_stretched_to_pixels(const RegionQuery& query) {
  const Shape& from = query.type(query.region.inputs[0]).shape;
  const Shape& to = query.type(query.region.outputs[0]).shape;
  return query.region.inputs.size() == 1 && to.rank() == 4 && from.rank() == 4 && from[1] == to[1] &&
         from[2] == 1 && from[3] == 1 && to[1] % 16 == 0;
}

// Returns the layouts of the operands that have the result's shape, blocked ones first. If there are none,
// returns blocked channels if a value per channel is broadcast over pixels, and otherwise the row-major
// layout.
std::vector<Layout> layouts_to_offer(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < query.given.size(); ++i)
    if (query.given[i] && query.type(query.region.inputs[i]).shape == shape &&
        std::ranges::find(layouts, *query.given[i]) == layouts.end())
      layouts.push_back(*query.given[i]);
  if (layouts.empty())
    layouts.push_back(is_stretched_to_pixels(query) ? blocked_layout(shape)
                                                    : Layout::row_major(shape.rank()));
  std::ranges::stable_sort(layouts, std::ranges::greater{},
                           [](const Layout& layout) { return layout.blocks().size(); });
  return layouts;
}

// Returns the shapes that the loops read. A single element without padding counts as a scalar, whatever its
// rank.
std::vector<Shape> operand_shapes(const RegionQuery& query, const Candidate& candidate) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < elementwise_of(query)->operands; ++i) {
    const Shape& shape = query.type(query.region.inputs[i]).shape;
    shapes.push_back(candidate.inputs[i].elements(shape) == 1 ? Shape{} : shape);
  }
  return shapes;
}

// True if the padding of the result stays zero. A broadcast operand has values in the padding too, so all
// operands must have the result's shape.
bool keeps_padding_zero(const Elementwise& op, const std::vector<Shape>& operands, const Shape& shape) {
  return keeps_zero(op) &&
         std::ranges::all_of(operands, [&](const Shape& operand) { return operand == shape; });
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query, const Layout& layout,
                                       const std::vector<Shape>& operands) {
  const TensorType& result = query.type(query.region.outputs[0]);
  Elementwise op = *elementwise_of(query);
  std::vector<std::size_t> bytes;
  for (const Value input : query.region.inputs) bytes.push_back(size_of(query.type(input).dtype));
  const bool clean = !has_padding(layout, result.shape) || keeps_padding_zero(op, operands, result.shape);
  const NestedLaunch launch(nest_of(layout, result.shape, operands), bytes, size_of(result.dtype),
                            std::move(op));
  if (clean) return make_kernel([launch](const Binding& binding) { launch.run(binding); });
  return make_kernel([launch, eraser = PaddingEraser(layout, result)](const Binding& binding) {
    launch.run(binding);
    eraser.erase(binding.outputs[0]);
  });
}

Candidate candidate_for(const RegionQuery& query, const Layout& layout) {
  const TensorType& result = query.type(query.region.outputs[0]);
  Candidate candidate;
  candidate.implementation = "fast";
  candidate.outputs = {layout};
  for (std::size_t i = 0; i < query.region.inputs.size(); ++i) {
    const TensorType& type = query.type(query.region.inputs[i]);
    const bool one_element = type.shape.elements() == 1;
    candidate.inputs.push_back(one_element && query.given[i] && query.given[i]->blocks().empty()
                                   ? *query.given[i]
                                   : beside(layout, result.shape, type.shape));
    if (type == result && candidate.inputs[i] == layout) candidate.in_place.emplace_back(0, i);
  }
  candidate.seconds = seconds_of_traffic(query, candidate);
  candidate.make = [query, layout, operands = operand_shapes(query, candidate)] {
    return make_for(query, layout, operands);
  };
  return candidate;
}

class ElementwiseSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    const auto mask = find_relu_mask(graph, {last, 0}, uses);
    if (!mask) return {};
    Region region{relu_mask, {mask->compare, last}, {mask->y, mask->grad}, {{last, 0}}};
    region.inputs.insert(region.inputs.end(), mask->zeros.begin(), mask->zeros.end());
    return {std::move(region)};
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    if (!is_fit(query)) return candidates;
    for (const Layout& layout : layouts_to_offer(query)) candidates.push_back(candidate_for(query, layout));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_elementwise_source() {
  return std::make_unique<ElementwiseSource>();
}

}  // namespace plexaura::fast
