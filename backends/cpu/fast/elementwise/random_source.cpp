#include <algorithm>

#include "backends/cpu/fast/elementwise/draws.h"
#include "backends/cpu/fast/elementwise/random_loops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/sources.h"
#include "core/ops/random.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_uniform = 1.5;
constexpr double nanoseconds_per_normal = 3;

// Makes a kernel that fills its output with random values. fill(words, values) makes draws_at_once of them.
template <class Fill>
std::shared_ptr<const Kernel> make_random(const DrawnElements& drawn, double nanoseconds, const Fill& fill) {
  return make_kernel([=](const Binding& at) {
    drawn.for_each_piece(reinterpret_cast<const std::int64_t*>(at.inputs[0]), nanoseconds,
                         [=, y = floats(at.outputs[0])](std::int64_t begin, std::int64_t count,
                                                        const std::uint32_t* words, std::int64_t skipped) {
                           float values[draws_at_once];
                           fill(words, values);
                           std::copy_n(values + skipped, count, y + begin);
                         });
  });
}

std::shared_ptr<const Kernel> make_for(const RegionQuery& query) {
  const RandomDraws& of = op_cast<RandomValues>(query.op()).options();
  const DrawnElements drawn(of.type.shape, of.batch, of.stream);
  if (query.region.kind == "uniform")
    return make_random(
        drawn, nanoseconds_per_uniform,
        [low = of.first, width = of.second - of.first, largest = of.largest()](
            const std::uint32_t* words, float* y) { uniform_loop(words, low, width, largest, y); });
  return make_random(drawn, nanoseconds_per_normal,
                     [mean = static_cast<float>(of.first), deviation = static_cast<float>(of.second)](
                         const std::uint32_t* words, float* y) { normal_loop(words, mean, deviation, y); });
}

class RandomSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const std::string& kind = query.region.kind;
    if (kind != "uniform" && kind != "normal") return {};
    return row_major_floats(query, make_for);
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_random_source() { return std::make_unique<RandomSource>(); }

}  // namespace plexaura::fast
