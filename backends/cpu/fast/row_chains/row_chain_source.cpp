#include <algorithm>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/row_chains/row_chain_kernel.h"
#include "backends/cpu/fast/row_chains/row_chain_regions.h"
#include "backends/cpu/fast/sources.h"

namespace plexaura::fast {

namespace {

class RowChainSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    return match_row_chain(graph, last, uses);
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!is_row_chain(query.region)) return {};
    Candidate candidate = row_major_candidate(query);
    const std::int64_t rows = rows_of(query.type(query.region.outputs[0]).shape);
    candidate.seconds += 1e-9 * nanoseconds_per_call * static_cast<double>(rows) *
                         static_cast<double>(query.region.nodes.size());
    candidate.make = [query] { return make_row_chain(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_row_chain_source() { return std::make_unique<RowChainSource>(); }

}  // namespace plexaura::fast
