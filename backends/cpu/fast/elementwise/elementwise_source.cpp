#include <algorithm>
#include <array>
#include <functional>

#include "backends/cpu/fast/channel_view.h"
#include "backends/cpu/fast/elementwise/elementwise_ops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/loop_nest.h"
#include "backends/cpu/fast/padding_eraser.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/physical.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "backends/regions/relu_mask.h"

namespace plexaura::fast {

namespace {

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

// True if a value per channel is broadcast over pixels, as by the gradient of global pooling. The op that
// reads the result takes images too.
bool is_stretched_to_pixels(const RegionQuery& query) {
  const Shape& from = query.type(query.region.inputs[0]).shape;
  const Shape& to = query.type(query.region.outputs[0]).shape;
  return query.region.inputs.size() == 1 && to.rank() == 4 && from.rank() == 4 && from[1] == to[1] &&
         from[2] == 1 && from[3] == 1 && to[1] % 16 == 0;
}

// True if the layout has more padding than elements, as that of few channels in a block of many has.
bool is_mostly_padding(const Layout& layout, const Shape& shape) {
  return layout.elements(shape) > 2 * shape.elements();
}

// Returns the layouts of the operands that have the result's shape, blocked ones first. If there are none,
// returns blocked channels if a value per channel is broadcast over pixels, and otherwise the row-major
// layout. For inference, adds the row-major layout if the first one is mostly padding, over which the loops would
// compute too. In training, gradients would reorder the values once more.
std::vector<Layout> layouts_to_offer(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  std::vector<Layout> layouts = layouts_like_result(query);
  if (layouts.empty())
    layouts.push_back(is_stretched_to_pixels(query) ? blocked_layout(shape)
                                                    : Layout::row_major(shape.rank()));
  std::ranges::stable_sort(layouts, std::ranges::greater{},
                           [](const Layout& layout) { return layout.blocks().size(); });
  const Layout row_major = Layout::row_major(shape.rank());
  if (query.graph.mode() == Mode::inference && is_mostly_padding(layouts[0], shape) &&
      std::ranges::find(layouts, row_major) == layouts.end())
    layouts.push_back(row_major);
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
    if (!has_elements(query.graph, query.region.outputs[0]) || !elementwise_of(query)) return candidates;
    for (const Layout& layout : layouts_to_offer(query)) candidates.push_back(candidate_for(query, layout));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_elementwise_source() {
  return std::make_unique<ElementwiseSource>();
}

}  // namespace plexaura::fast
