#include "backends/cpu/fast/copy.h"
#include "backends/cpu/fast/elementwise_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/cpu/region_match.h"
#include "core/ops/reorder.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.4;

class TransferSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "reorder") return {};
    const Layout& to = op_cast<Reorder>(query.op()).to();
    if (query.given[0].value_or(to) != to) return {};
    if (query.accumulate && !is_float32(query.graph, query.region.inputs[0])) return {};
    Candidate candidate;
    candidate.implementation = "fast";
    candidate.inputs = candidate.outputs = {to};
    candidate.accumulates = true;
    candidate.seconds = seconds_of_traffic(query, candidate);
    return {std::move(candidate)};
  }

  std::shared_ptr<const Kernel> make(const RegionQuery& query, const Candidate& candidate) const override {
    const TensorType& type = query.type(query.region.inputs[0]);
    if (!query.accumulate)
      return make_kernel(
          [bytes = static_cast<std::size_t>(candidate.outputs[0].bytes(type))](const Binding& binding) {
            if (binding.inputs[0] != binding.outputs[0])
              copy_bytes(binding.inputs[0], binding.outputs[0], bytes);
          });
    return make_kernel([count = candidate.outputs[0].elements(type.shape)](const Binding& binding) {
      const float* src = floats(binding.inputs[0]);
      float* dst = floats(binding.outputs[0]);
      parallel_pieces(count, nanoseconds_per_element, 64, [=](std::int64_t begin, std::int64_t end) {
        add_loop(src + begin, dst + begin, end - begin);
      });
    });
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_transfer_source() { return std::make_unique<TransferSource>(); }

}  // namespace plexaura::fast
