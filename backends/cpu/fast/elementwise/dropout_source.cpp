#include "backends/cpu/fast/elementwise/draws.h"
#include "backends/cpu/fast/elementwise/dropout_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/dropout.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_draw = 1;
constexpr double nanoseconds_per_element = 0.3;

constexpr auto forward = "dropout";
constexpr auto backward = "dropout_grad";

std::shared_ptr<const Kernel> make_forward(const RegionQuery& query) {
  const DropoutDraws& options = op_cast<DropoutOp>(query.op()).options();
  const DrawnElements drawn(query.type(query.region.inputs[0]).shape, options.batch, options.stream);
  const DropoutRule rule = rule_of(options.p);
  return make_kernel([=](const Binding& at) {
    const float* x = floats(at.inputs[0]);
    float* y = floats(at.outputs[0]);
    auto* mask = reinterpret_cast<bool*>(at.outputs[1]);
    drawn.for_each_piece(
        reinterpret_cast<const std::int64_t*>(at.inputs[1]), nanoseconds_per_draw,
        [=](std::int64_t begin, std::int64_t count, const std::uint32_t* words, std::int64_t skipped) {
          drop(rule, words + skipped, count, x + begin, y == nullptr ? nullptr : y + begin,
               mask == nullptr ? nullptr : mask + begin);
        });
  });
}

std::shared_ptr<const Kernel> make_backward(const RegionQuery& query) {
  const auto scale = static_cast<float>(1 / (1 - op_cast<DropoutGrad>(query.op()).options().p));
  const std::int64_t elements = query.type(query.region.inputs[0]).shape.elements();
  return make_kernel([=](const Binding& at) {
    const auto* mask = reinterpret_cast<const bool*>(at.inputs[1]);
    parallel_pieces(elements, nanoseconds_per_element, draws_at_once,
                    [&](std::int64_t begin, std::int64_t end) {
                      drop_grad(floats(at.inputs[0]) + begin, mask + begin, scale, end - begin,
                                floats(at.outputs[0]) + begin);
                    });
  });
}

class DropoutSource final : public KernelSource {
 public:
  bool knows(const std::string& kind) const override { return kind == forward || kind == backward; }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const std::string& kind = query.region.kind;
    const Value x = query.region.inputs[0];
    if (!knows(kind) || !is_float32(query.graph, x) || !has_elements(query.graph, x)) return {};
    Candidate candidate = row_major_candidate(query);
    if (kind == backward) candidate.in_place = {{0, 0}};
    candidate.make = [query] {
      return query.region.kind == forward ? make_forward(query) : make_backward(query);
    };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_dropout_source() { return std::make_unique<DropoutSource>(); }

}  // namespace plexaura::fast
