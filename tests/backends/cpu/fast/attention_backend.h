#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fast/attention/attention_match.h"
#include "core/device/forwarding_backend.h"

namespace plexaura::testing {

// The CPU with the regions of every attention, whether they pay or not.
class AttentionBackend final : public ForwardingBackend {
 public:
  AttentionBackend() : AttentionBackend(make_cpu_backend()) {}

  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Region> all = inner().regions(graph, last, uses);
    for (const DType dtype : {DType::float32, DType::float64})
      for (Region& region : fast::match_attention(graph, last, uses, dtype)) all.push_back(std::move(region));
    return all;
  }

  std::vector<Repeat> repeats(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Repeat> all;
    for (const DType dtype : {DType::float32, DType::float64})
      for (Repeat& repeat :
           fast::attention_repeats(graph, last, uses, dtype, [](const Region&) { return true; }))
        all.push_back(std::move(repeat));
    return all;
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> all = inner().propose(query);
    if (fast::attention_region(query.region.kind))
      for (Candidate& candidate : all) candidate.seconds = 0;
    return all;
  }

 private:
  explicit AttentionBackend(std::unique_ptr<Backend> cpu) : ForwardingBackend(*cpu), cpu_(std::move(cpu)) {}

  std::unique_ptr<Backend> cpu_;
};

}  // namespace plexaura::testing
