#include <limits>
#include <utility>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/cpu/fast/winograd/winograd_shapes.h"
#include "backends/cpu/fast/winograd/winograd_weight_grad.h"
#include "core/ops/conv2d.h"

namespace plexaura::fast {

namespace {

constexpr auto with_bias = "conv2d_weight_grad+bias";

const Conv2dWeightGradOptions& options_of(const RegionQuery& query) {
  const NodeId weights = query.region.outputs[0].node;
  return op_cast<Conv2dWeightGrad>(*query.graph.record(weights).op).options();
}

bool fits(const RegionQuery& query) {
  return fits_winograd(query.type(query.region.outputs[0]).shape, options_of(query));
}

std::shared_ptr<const Kernel> make_winograd(const RegionQuery& query, const Candidate& candidate) {
  const Conv2dOptions& options = options_of(query);
  const auto view_of = [&](std::size_t input) {
    return *pixel_view(candidate.inputs[input], query.type(query.region.inputs[input]).shape);
  };
  const WinogradWeightGrad gradient(
      {view_of(0), options.padding.h, options.padding.w}, view_of(1),
      window_offsets(candidate.outputs[0], query.type(query.region.outputs[0]).shape),
      candidate.outputs.size() == 2, most_threads());
  const std::size_t workspace = gradient.workspace();
  return make_kernel(
      [gradient](const Binding& at) {
        gradient.run(floats(at.inputs[0]), floats(at.inputs[1]), floats(at.outputs[0]),
                     at.outputs.size() == 2 ? floats(at.outputs[1]) : nullptr, floats(at.workspace));
      },
      workspace);
}

// Returns the layout in which an image is, or one in which the kernel can read it.
Layout layout_of_image(const RegionQuery& query, std::size_t input) {
  const Shape& shape = query.type(query.region.inputs[input]).shape;
  const std::optional<Layout>& given = query.given[input];
  if (given && pixel_view(*given, shape)) return *given;
  return blocked_layout(shape);
}

// Returns the layouts of weights that kernels of training read and that have no padding here.
std::vector<Layout> layouts_of_weights(const Shape& weights) {
  std::vector<Layout> layouts{Layout::row_major(4), Layout({0, 2, 3, 1})};
  for (const std::int64_t lanes : {8, 16}) {
    Layout blocks({0, 1, 2, 3}, {{1, lanes}, {0, lanes}});
    if (blocks.elements(weights) == weights.elements()) layouts.push_back(std::move(blocks));
  }
  return layouts;
}

class WinogradWeightGradSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  bool knows(const std::string& kind) const override {
    return kind == "conv2d_weight_grad" || kind == with_bias;
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!knows(query.region.kind) || !is_dense_float32(query) || !fits(query)) return {};
    std::vector<Candidate> candidates;
    for (Layout& weights : layouts_of_weights(query.type(query.region.outputs[0]).shape)) {
      Candidate candidate;
      candidate.implementation = "fast winograd";
      candidate.inputs = {layout_of_image(query, 0), layout_of_image(query, 1)};
      candidate.outputs = {std::move(weights)};
      if (query.region.outputs.size() == 2) candidate.outputs.push_back(Layout::row_major(1));
      candidate.seconds = std::numeric_limits<double>::infinity();
      candidate.make = [query, candidate] { return make_winograd(query, candidate); };
      candidates.push_back(std::move(candidate));
    }
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_winograd_weight_grad_source() {
  return std::make_unique<WinogradWeightGradSource>();
}

}  // namespace plexaura::fast
