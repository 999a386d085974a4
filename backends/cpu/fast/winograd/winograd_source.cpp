#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/cpu/fast/winograd/winograd_kernel.h"
#include "backends/cpu/fast/winograd/winograd_shapes.h"
#include "core/ops/conv2d.h"

namespace plexaura::fast {

namespace {

// A convolution, or the gradient of one by its source, as a convolution of the region's operand `source`.
struct Convolution {
  bool is_gradient;
  std::size_t source;
  std::size_t weights;
  const Conv2dOptions& options;
};

Convolution convolution_of(const RegionQuery& query) {
  if (query.region.kind == "conv2d") return {false, 0, 1, op_cast<Conv2dOp>(query.op()).options()};
  return {true, 1, 0, op_cast<Conv2dInputGrad>(query.op()).options()};
}

bool fits(const RegionQuery& query, const Convolution& of) {
  return fits_winograd(query.type(query.region.inputs[of.weights]).shape, of.options);
}

Layout in_blocks(std::int64_t lanes) { return Layout({0, 1, 2, 3}, {{1, lanes}}); }

// Returns the layout in which the weights are, or else the one that other kernels of training read most often beside a
// result in this layout. A forward pass alone keeps its weights, so they are brought once into a layout whose vectors
// have neighbouring channels of the result.
Layout layout_of_weights(const RegionQuery& query, const Convolution& of, const Layout& result) {
  const std::int64_t lanes = result.block_of(1);
  if (query.graph.mode() == Mode::inference) {
    const std::int64_t block = lanes == 16 ? 16 : 8;
    return of.is_gradient ? Layout({1, 0, 2, 3}, {{0, block}, {1, block}})
                          : Layout({0, 1, 2, 3}, {{1, block}, {0, block}});
  }
  if (const auto& given = query.given[of.weights]) return *given;
  return lanes == 1 ? Layout::row_major(4) : Layout({0, 1, 2, 3}, {{1, lanes}, {0, lanes}});
}

// The gradient is a convolution with windows turned by half a turn, whose channels change places. With tiles of its
// source it is the transposed algorithm of the convolution, whose windows are not turned.
WinogradConvolution gradient_of(WinogradSource source, const PixelView& result, WindowOffsets windows,
                                TilesOf tiles_of) {
  std::swap(windows.result, windows.source);
  if (tiles_of == TilesOf::source) return {source, result, std::move(windows), most_threads(), tiles_of};
  std::ranges::reverse(windows.row);
  std::ranges::reverse(windows.column);
  source.above = 2 - source.above;
  source.before = 2 - source.before;
  return {source, result, std::move(windows), most_threads()};
}

std::shared_ptr<const Kernel> make_winograd(const RegionQuery& query, const Candidate& candidate) {
  const Convolution of = convolution_of(query);
  const Shape& shape = query.type(query.region.inputs[of.source]).shape;
  const Shape& result_shape = query.type(query.region.outputs[0]).shape;
  const PixelView result = *pixel_view(candidate.outputs[0], result_shape);
  const WinogradSource source{*pixel_view(candidate.inputs[of.source], shape), of.options.padding.h,
                              of.options.padding.w};
  WindowOffsets windows =
      window_offsets(candidate.inputs[of.weights], query.type(query.region.inputs[of.weights]).shape);
  const WinogradConvolution convolution =
      of.is_gradient ? gradient_of(source, result, std::move(windows), fewer_tiles(shape, result_shape))
                     : WinogradConvolution(source, result, std::move(windows), most_threads());
  const std::size_t workspace = convolution.workspace();
  return make_kernel(
      [convolution, of_source = of.source, of_weights = of.weights](const Binding& at) {
        convolution.run(floats(at.inputs[of_source]), floats(at.inputs[of_weights]),
                        at.inputs.size() == 3 ? floats(at.inputs[2]) : nullptr, floats(at.outputs[0]),
                        floats(at.workspace));
      },
      workspace);
}

// Returns nothing if the operands have no vectors of channels in such layouts.
std::optional<Candidate> candidate_for(const RegionQuery& query, const Convolution& of,
                                       const Layout& result) {
  const std::vector<Value>& inputs = query.region.inputs;
  const Shape& shape = query.type(inputs[of.source]).shape;
  const std::optional<Layout>& given = query.given[of.source];
  const Layout source = given && pixel_view(*given, shape) ? *given : result;
  if (!pixel_view(source, shape) || !pixel_view(result, query.type(query.region.outputs[0]).shape))
    return std::nullopt;
  Candidate candidate;
  candidate.implementation = "fast winograd";
  candidate.inputs.assign(inputs.size(), Layout::row_major(1));
  candidate.inputs[of.source] = source;
  candidate.inputs[of.weights] = layout_of_weights(query, of, result);
  candidate.outputs = {result};
  candidate.seconds = std::numeric_limits<double>::infinity();
  candidate.make = [query, candidate] { return make_winograd(query, candidate); };
  return candidate;
}

class WinogradKernelSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  bool knows(const std::string& kind) const override {
    return kind == "conv2d" || kind == "conv2d_input_grad";
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!knows(query.region.kind) || !is_dense_float32(query)) return {};
    const Convolution of = convolution_of(query);
    if (!fits(query, of)) return {};
    std::vector<Candidate> candidates;
    for (const Layout& result : {in_blocks(16), in_blocks(8), Layout({0, 2, 3, 1})})
      if (auto candidate = candidate_for(query, of, result)) candidates.push_back(std::move(*candidate));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_winograd_source() {
  return std::make_unique<WinogradKernelSource>();
}

}  // namespace plexaura::fast
