#include <algorithm>

#include "backends/cpu/fast/elementwise/dropout_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/cpu/region_match.h"
#include "core/ops/dropout.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_draw = 1;
constexpr double nanoseconds_per_element = 0.3;

constexpr auto forward = "dropout";
constexpr auto backward = "dropout_grad";

struct DropoutForward {
  std::int64_t elements;
  std::int64_t sample_elements;  // 0 where all ranks draw alike
  std::int64_t stream;
  DropoutRule rule;

  void run(const Binding& at) const {
    const auto* random = reinterpret_cast<const std::int64_t*>(at.inputs[1]);  // seed, step, first sample
    const philox::Draws draws(random[0], random[1], stream);
    const std::int64_t first = random[2] * sample_elements;
    parallel_pieces(elements, nanoseconds_per_draw, draws_at_once,
                    [&](std::int64_t begin, std::int64_t end) { run_piece(draws, first, begin, end, at); });
  }

 private:
  // A draw begins at a multiple of four, at or before the first element that it is for.
  void run_piece(const philox::Draws& draws, std::int64_t first, std::int64_t begin, std::int64_t end,
                 const Binding& at) const {
    const float* x = floats(at.inputs[0]);
    float* y = floats(at.outputs[0]);
    auto* mask = reinterpret_cast<bool*>(at.outputs[1]);
    std::uint32_t words[draws_at_once];
    while (begin < end) {
      draw(draws, (first + begin) / 4, words);
      const std::int64_t skipped = (first + begin) % 4;
      const std::int64_t count = std::min(end - begin, draws_at_once - skipped);
      drop(rule, words + skipped, count, x + begin, y == nullptr ? nullptr : y + begin,
           mask == nullptr ? nullptr : mask + begin);
      begin += count;
    }
  }
};

std::shared_ptr<const Kernel> make_forward(const RegionQuery& query) {
  const auto& op = op_cast<Dropout>(query.op());
  const Shape& shape = query.type(query.region.inputs[0]).shape;
  const double p = op.options().p;
  const bool per_sample = op.options().batch && shape.rank() > 0;
  const DropoutForward kernel{
      shape.elements(),
      per_sample ? shape.elements() / shape[0] : 0,
      op.options().stream,
      {static_cast<std::uint32_t>(p * 4294967296.0), static_cast<float>(1 / (1 - p))}};
  return make_kernel([kernel](const Binding& at) { kernel.run(at); });
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
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const std::string& kind = query.region.kind;
    const Value x = query.region.inputs[0];
    if ((kind != forward && kind != backward) || !is_float32(query.graph, x) || !has_elements(query.graph, x))
      return {};
    Candidate candidate = row_major_candidate(query);
    if (kind == backward) candidate.in_place = {{0, 0}};
    candidate.make = [query](bool) {
      return query.region.kind == forward ? make_forward(query) : make_backward(query);
    };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_dropout_source() { return std::make_unique<DropoutSource>(); }

}  // namespace plexaura::fast
