#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/onednn/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/reorder.h"

namespace plexaura::onednn {

namespace {

using Space = Argument::Space;

struct Ends {
  memory::desc src;
  memory::desc dst;
};

// Returns the two ends of a reorder. Returns nothing if the layout does not change, since that needs no
// library, and for layouts or types that the library cannot express.
std::optional<Ends> ends_of(const RegionQuery& query) {
  if (query.region.kind != "reorder" || !has_elements(query.graph, query.region.inputs[0]))
    return std::nullopt;
  const TensorType& type = query.type(query.region.inputs[0]);
  const Layout& to = op_cast<Reorder>(query.op()).to();
  if (!query.given[0] || *query.given[0] == to) return std::nullopt;
  const auto src = desc_of(*query.given[0], type);
  const auto dst = desc_of(to, type);
  if (!src || !dst) return std::nullopt;
  return Ends{*src, *dst};
}

dnnl::reorder::primitive_desc describe(const Ends& ends) {
  return {cpu_engine(), ends.src, cpu_engine(), ends.dst, attributes_with({})};
}

std::shared_ptr<const Kernel> make_reorder(const Ends& ends) {
  const auto primitive = describe(ends);
  return std::make_shared<PrimitiveKernel>(
      dnnl::reorder(primitive), std::vector<Argument>{{DNNL_ARG_FROM, primitive.src_desc(), Space::input, 0},
                                                      {DNNL_ARG_TO, primitive.dst_desc(), Space::output, 0},
                                                      scratchpad_of(primitive)});
}

class ReorderSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const auto ends = ends_of(query);
    if (!ends) return {};
    Candidate candidate;
    try {
      candidate.implementation = std::string("onednn ") + describe(*ends).impl_info_str();
      if (is_reference(candidate.implementation)) return {};
    } catch (const dnnl::error&) {
      return {};
    }
    candidate.inputs = {*query.given[0]};
    candidate.outputs = {op_cast<Reorder>(query.op()).to()};
    candidate.seconds = seconds_of_traffic(query, candidate);
    candidate.make = [ends = *ends] { return make_reorder(ends); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_reorder_source() { return std::make_unique<ReorderSource>(); }

}  // namespace plexaura::onednn
