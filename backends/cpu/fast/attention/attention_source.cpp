#include <algorithm>

#include "backends/cpu/fast/attention/attention_kernels.h"
#include "backends/cpu/fast/attention/attention_match.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"

namespace plexaura::fast {

namespace {

bool pays(const Graph& graph, const Region& region) {
  return attention_pays(*attention_region(region.kind), attention_shape(graph, region));
}

class AttentionSource final : public KernelSource {
 public:
  explicit AttentionSource(DType dtype) : dtype_(dtype) {}

  Denormals denormals() const override {
    return dtype_ == DType::float32 ? Denormals::flushed : Denormals::kept;
  }

  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Region> regions = match_attention(graph, last, uses, dtype_);
    std::erase_if(regions, [&](const Region& region) { return !pays(graph, region); });
    return regions;
  }

  std::vector<Repeat> repeats(const Graph& graph, NodeId last, const Uses& uses) const override {
    return attention_repeats(graph, last, uses, dtype_,
                             [&](const Region& region) { return pays(graph, region); });
  }

  bool knows(const std::string& kind) const override { return attention_region(kind).has_value(); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    // An op of another library may be named like a kind.
    if (query.region.nodes.size() == 1) return {};
    const auto region = attention_region(query.region.kind);
    if (!region || query.type(query.region.inputs[0]).dtype != dtype_) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.seconds = seconds_of_attention(*region, attention_shape(query.graph, query.region));
    candidate.reads.assign(query.region.inputs.size(), false);
    std::fill_n(candidate.reads.begin(), region->inputs_read(), true);
    candidate.make = [query, region = *region] { return make_attention(query, region); };
    return {std::move(candidate)};
  }

 private:
  DType dtype_;
};

}  // namespace

std::unique_ptr<const KernelSource> make_attention_source(DType dtype) {
  return std::make_unique<AttentionSource>(dtype);
}

}  // namespace plexaura::fast
