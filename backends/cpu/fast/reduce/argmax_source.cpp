#include <algorithm>
#include <memory>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/reduce/argmax_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/lines.h"
#include "core/ops/reduce.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.3;
constexpr std::int64_t least_columns = 8;  // fewer do not fill a vector; the portable kernel is as fast

template <class T>
void find_places(const Lines& lines, const T* x, std::int64_t* places) {
  const std::int64_t strips = (lines.behind + most_argmax_columns - 1) / most_argmax_columns;
  const double cost = nanoseconds_per_element *
                      static_cast<double>(lines.extent * std::min(lines.behind, most_argmax_columns));
  parallel_pieces(
      lines.before * strips, cost, [&, loop = argmax_loop<T>()](std::int64_t begin, std::int64_t end) {
        for (std::int64_t strip = begin; strip < end; ++strip) {
          const std::int64_t before = strip / strips;
          const std::int64_t first = strip % strips * most_argmax_columns;
          loop(x + before * lines.extent * lines.behind + first, lines.extent, lines.behind,
               std::min(most_argmax_columns, lines.behind - first), places + before * lines.behind + first);
        }
      });
}

template <class T>
std::shared_ptr<const Kernel> make_argmax(const Lines& lines) {
  return make_kernel([lines](const Binding& at) {
    find_places(lines, elements<T>(at.inputs[0]), elements<std::int64_t>(at.outputs[0]));
  });
}

// Offers argmax along another axis than the last one, for row-major operands.
class ArgMaxSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "argmax") return {};
    const TensorType& type = query.type(query.region.inputs[0]);
    if (type.dtype != DType::float32 && type.dtype != DType::float64) return {};
    const std::int64_t axis = op_cast<ArgMax>(query.op()).options().axes[0];
    const Lines lines = Lines::along(type.shape, normalise_axis(axis, type.shape.rank()));
    if (lines.behind < least_columns || type.shape.elements() == 0) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.make = [lines, is_double = type.dtype == DType::float64] {
      return is_double ? make_argmax<double>(lines) : make_argmax<float>(lines);
    };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_argmax_source() { return std::make_unique<ArgMaxSource>(); }

}  // namespace plexaura::fast
