#include <algorithm>
#include <optional>
#include <string>

#include "backends/cpu/fast/batch_norm/batch_norm_kernels.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/batch_norm_regions.h"
#include "backends/regions/region_match.h"
#include "core/ops/batch_norm.h"

namespace plexaura::fast {

namespace {

// Returns the region of this kind, also for a single op; empty for all other kinds.
std::optional<BatchNormRegion> known_region(const std::string& kind) {
  if (auto region = batch_norm_region(kind)) return region;
  if (kind == "normalise") return BatchNormRegion{};
  if (kind == "normalise_grad") return BatchNormRegion{.direction = BatchNormRegion::Direction::backward};
  return std::nullopt;
}

bool is_known(const std::string& kind) {
  return known_region(kind) || kind == "moments" || kind == "moments_grad";
}

// True for a scalar or a value per channel.
bool is_small(const RegionQuery& query, Value value) { return query.type(value).shape.rank() < 2; }

// Returns the layouts of the large operands that have vectors of channels. If there are none, returns blocked
// channels.
std::vector<Layout> layouts_to_offer(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.inputs[0]).shape;
  std::vector<Layout> layouts;
  for (std::size_t i = 0; i < query.given.size(); ++i)
    if (query.given[i] && !is_small(query, query.region.inputs[i]) && channel_view(*query.given[i], shape) &&
        std::ranges::find(layouts, *query.given[i]) == layouts.end())
      layouts.push_back(*query.given[i]);
  if (layouts.empty()) layouts.push_back(blocked_layout(shape));
  return layouts;
}

float* at_or_null(const std::vector<Address>& addresses, std::size_t index) {
  return index < addresses.size() ? floats(addresses[index]) : nullptr;
}

std::shared_ptr<const Kernel> make_backward(const BatchNormRegion& region, bool total,
                                            const ChannelView& view) {
  const BatchNormBackward norm{view, total};
  const auto run = [=](const Binding& at) {
    const auto output = [&](std::size_t index) { return at_or_null(at.outputs, index); };
    norm.run({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), floats(at.inputs[3]),
              floats(at.inputs[BatchNormRegion::grad_input]),
              region.masks ? floats(at.inputs[region.result_input()]) : nullptr,
              region.adds ? floats(at.inputs[region.addend_input()]) : nullptr, output(0), output(1),
              output(2), total ? nullptr : output(3), total ? nullptr : output(4),
              total ? output(BatchNormRegion::masked_output) : nullptr},
             reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_moments(const RegionQuery& query, const ChannelView& view) {
  const BatchNormForward norm{view};
  const double epsilon = op_cast<Moments>(query.op()).options().epsilon;
  const auto run = [=](const Binding& at) {
    norm.train({floats(at.inputs[0]), nullptr, nullptr, nullptr, nullptr, floats(at.outputs[0]),
                floats(at.outputs[1]), floats(at.outputs[2])},
               epsilon, reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_moments_grad(const ChannelView& view) {
  return make_kernel([norm = MomentsBackward{view}](const Binding& at) {
    norm.run({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), floats(at.inputs[3]),
              floats(at.inputs[4]), floats(at.outputs[0])});
  });
}

std::shared_ptr<const Kernel> make_forward(const RegionQuery& query, const BatchNormRegion& region,
                                           const ChannelView& view) {
  const BatchNormForward norm{view, region.relu};
  const auto addend = [region](const Binding& at) {
    return region.adds ? floats(at.inputs[region.addend_input()]) : nullptr;
  };
  if (!region.moments)
    return make_kernel([=](const Binding& at) {
      norm.normalise_by({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), addend(at),
                         floats(at.outputs[0]), nullptr, nullptr, nullptr},
                        floats(at.inputs[3]), floats(at.inputs[4]));
    });
  const double epsilon = op_cast<Moments>(query.op()).options().epsilon;
  const auto run = [=](const Binding& at) {
    norm.train({floats(at.inputs[0]), floats(at.inputs[1]), floats(at.inputs[2]), addend(at),
                floats(at.outputs[0]), floats(at.outputs[1]), floats(at.outputs[2]), floats(at.outputs[3])},
               epsilon, reinterpret_cast<double*>(at.workspace));
  };
  return make_kernel(run, norm.workspace());
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query, const ChannelView& view) {
  const std::string& kind = query.region.kind;
  if (kind == "moments") return make_moments(query, view);
  if (kind == "moments_grad") return make_moments_grad(view);
  const BatchNormRegion region = *known_region(kind);
  if (region.forward()) return make_forward(query, region, view);
  return make_backward(region, kind != "normalise_grad", view);
}

Candidate candidate_for(const RegionQuery& query, const Layout& layout) {
  const auto layout_for = [&](Value value) {
    return is_small(query, value) ? Layout::row_major(query.type(value).shape.rank()) : layout;
  };
  Candidate candidate;
  candidate.implementation = "fast";
  for (const Value value : query.region.inputs) candidate.inputs.push_back(layout_for(value));
  for (const Value value : query.region.outputs) candidate.outputs.push_back(layout_for(value));
  const ChannelView view = *channel_view(layout, query.type(query.region.inputs[0]).shape);
  if (const auto region = known_region(query.region.kind); region && !region->forward())
    candidate.in_place = {{region->output_in_place(query.region), BatchNormRegion::grad_input}};
  candidate.seconds = seconds_of_traffic(query, candidate, costs::traffic_of_batch_norm);
  candidate.make = [query, view] { return make_for(query, view); };
  return candidate;
}

class BatchNormSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    const DType dtype = graph.type({last, 0}).dtype;
    if ((dtype != DType::float32 && !has_16_bits(dtype)) || !has_elements(graph, {last, 0})) return {};
    return match_batch_norm(graph, last, uses);
  }

  bool knows(const std::string& kind) const override { return is_known(kind); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    if (!is_known(query.region.kind) || !is_dense_float32(query)) return candidates;
    for (const Layout& layout : layouts_to_offer(query)) candidates.push_back(candidate_for(query, layout));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_batch_norm_source() { return std::make_unique<BatchNormSource>(); }

}  // namespace plexaura::fast
