#include <algorithm>
#include <memory>

#include "backends/cpu/fast/copy/copy.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/reorder.h"
#include "core/tensor/reorder_plan.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_by_table = 1.5;

void copy_by_table(const ReorderPlan& plan, double nanoseconds_per_piece, const std::byte* src,
                   std::byte* dst) {
  plan.clear_padding(dst);
  parallel_pieces(plan.pieces(), nanoseconds_per_piece,
                  [&](std::int64_t begin, std::int64_t end) { plan.copy_pieces(src, dst, begin, end); });
}

std::shared_ptr<const Kernel> make_transfer(const Layout& from, const Layout& to, const TensorType& type) {
  if (from == to)
    return make_kernel([bytes = static_cast<std::size_t>(to.bytes(type))](const Binding& at) {
      if (at.inputs[0] != at.outputs[0]) copy_bytes(at.inputs[0], at.outputs[0], bytes);
    });
  const auto plan = std::make_shared<const ReorderPlan>(from, to, type);
  const double per_piece = nanoseconds_by_table * static_cast<double>(type.shape.elements()) /
                           static_cast<double>(std::max<std::int64_t>(plan->pieces(), 1));
  return make_kernel(
      [plan, per_piece](const Binding& at) { copy_by_table(*plan, per_piece, at.inputs[0], at.outputs[0]); });
}

// Offers reorders by a plain copy: from a layout to the same one, or by moving elements one by one to another
// one.
class TransferSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "reorder") return {};
    const TensorType& type = query.type(query.region.inputs[0]);
    const Layout& to = op_cast<Reorder>(query.op()).to();
    const Layout from = query.given[0].value_or(to);
    Candidate candidate;
    candidate.implementation = "fast";
    candidate.inputs = {from};
    candidate.outputs = {to};
    candidate.seconds = seconds_of_traffic(query, candidate, from == to ? 1 : costs::traffic_of_tables);
    candidate.make = [from, to, type] { return make_transfer(from, to, type); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_transfer_source() { return std::make_unique<TransferSource>(); }

}  // namespace plexaura::fast
