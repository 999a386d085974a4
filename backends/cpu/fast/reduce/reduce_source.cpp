#include <algorithm>
#include <optional>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/physical.h"
#include "backends/cpu/fast/reduce/reduce_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/reduce.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 0.2;
// The most elements that one call reduces if the result is a single number. It is fixed, so that the result
// does not depend on the number of threads.
constexpr std::int64_t piece = 16384;

// A reduction as a row-major array [outer, kept, inner, columns], which is reduced over `outer` and `inner`.
struct Reduction {
  std::int64_t outer = 1;
  std::int64_t kept = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  double divisor = 1;
  // The kept elements are stored in rows of `padded` elements, of which the first `used` are real.
  std::int64_t padded = 1;
  std::int64_t used = 1;

  bool keeps_nothing() const { return outer == 1 && kept == 1 && columns == 1; }
  std::int64_t pieces() const { return (inner + piece - 1) / piece; }
};

struct Loop {
  std::int64_t extent;
  bool summed;
};

bool is_summed(const Reduce& op, std::int64_t axis) {
  const auto& axes = op.options().axes;
  return std::ranges::find(axes, axis) != axes.end();
}

// Returns the loops of a layout. Neighbouring loops that are both summed, or both kept, are joined.
std::vector<Loop> loops_of(const Layout& layout, const Shape& shape, const Reduce& op) {
  std::vector<Loop> loops;
  for (const PhysicalAxis& axis : physical_axes(layout, shape)) {
    const bool summed = is_summed(op, axis.axis);
    if (axis.extent == 1) continue;
    if (!loops.empty() && loops.back().summed == summed)
      loops.back().extent *= axis.extent;
    else
      loops.push_back({axis.extent, summed});
  }
  return loops;
}

// Returns the loops as a Reduction. Returns nothing if the loops do not alternate as those of a Reduction do.
std::optional<Reduction> with_extents(const std::vector<Loop>& loops) {
  Reduction reduction;
  std::size_t next = loops.size();
  const auto take = [&](bool summed) {
    return next > 0 && loops[next - 1].summed == summed ? loops[--next].extent : 1;
  };
  reduction.columns = take(false);
  reduction.inner = take(true);
  reduction.kept = take(false);
  reduction.outer = take(true);
  if (next != 0) return std::nullopt;
  return reduction;
}

// True if the kept axes are in logical order, and at most the last of them has blocks. Then the result is
// row-major.
bool keeps_order(const Layout& layout, const Reduce& op) {
  std::vector<std::int64_t> kept;
  for (const std::int64_t axis : layout.order())
    if (!is_summed(op, axis)) kept.push_back(axis);
  if (!std::ranges::is_sorted(kept)) return false;
  const auto& blocks = layout.blocks();
  const auto blocked = [&](const Layout::Block& block) { return !is_summed(op, block.axis); };
  const auto count = std::ranges::count_if(blocks, blocked);
  return count == 0 || (count == 1 && std::ranges::find_if(blocks, blocked)->axis == kept.back());
}

std::optional<Reduction> reduction_of(const Layout& layout, const Shape& shape, const Reduce& op) {
  if (!keeps_order(layout, op)) return std::nullopt;
  auto reduction = with_extents(loops_of(layout, shape, op));
  if (!reduction) return std::nullopt;
  double averaged = 1;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (is_summed(op, axis)) {
      averaged *= static_cast<double>(shape[axis]);
    } else {
      reduction->used = shape[axis];
      reduction->padded = layout.padded(shape)[axis];
    }
  }
  if (op.name() == "mean") reduction->divisor = averaged;
  return reduction;
}

// Computes a reduction with the loops of a dtype.
class ReduceLaunch {
 public:
  ReduceLaunch(const Reduction& of, const ReduceLoops& loops, std::size_t bytes_of_element)
      : of_(of), loops_(loops), element_(static_cast<std::int64_t>(bytes_of_element)) {}

  std::size_t workspace() const {
    return of_.keeps_nothing() ? static_cast<std::size_t>(of_.pieces()) * loops_.bytes_of_total : 0;
  }

  void run(const Binding& at) const {
    if (of_.keeps_nothing())
      reduce_all(at.inputs[0], at.outputs[0], at.workspace);
    else if (of_.columns == 1)
      reduce_rows(at.inputs[0], at.outputs[0]);
    else
      reduce_columns(at.inputs[0], at.outputs[0]);
  }

 private:
  std::byte* total_at(std::byte* totals, std::int64_t place) const {
    return totals + place * static_cast<std::int64_t>(loops_.bytes_of_total);
  }

  void store(std::int64_t physical, const std::byte* total, std::byte* dst) const {
    const std::int64_t column = physical % of_.padded;
    if (column < of_.used) loops_.store(total, of_.divisor, dst, physical / of_.padded * of_.used + column);
  }

  // Reduces all elements to one number.
  void reduce_all(const std::byte* src, std::byte* dst, std::byte* partial) const {
    parallel_pieces(of_.pieces(), nanoseconds_per_element * piece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        loops_.start(total_at(partial, i), 1);
        loops_.run(src + i * piece * element_, std::min(piece, of_.inner - i * piece), total_at(partial, i));
      }
    });
    for (std::int64_t i = 1; i < of_.pieces(); ++i) loops_.combine(total_at(partial, i), partial, 1);
    store(0, partial, dst);
  }

  void reduce_rows(const std::byte* src, std::byte* dst) const {
    const double cost = nanoseconds_per_element * static_cast<double>(of_.outer * of_.inner);
    parallel_pieces(of_.kept, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        alignas(double) std::byte total[sizeof(double)];
        loops_.start(total, 1);
        for (std::int64_t outer = 0; outer < of_.outer; ++outer)
          loops_.run(src + (outer * of_.kept + i) * of_.inner * element_, of_.inner, total);
        store(i, total, dst);
      }
    });
  }

  void reduce_columns(const std::byte* src, std::byte* dst) const {
    const std::int64_t tiles = (of_.columns + most_columns - 1) / most_columns;
    const double cost = nanoseconds_per_element *
                        static_cast<double>(of_.outer * of_.inner * std::min(of_.columns, most_columns));
    parallel_pieces(of_.kept * tiles, cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t kept = i / tiles;
        const std::int64_t first = i % tiles * most_columns;
        const std::int64_t columns = std::min(most_columns, of_.columns - first);
        alignas(64) std::byte totals[most_columns * sizeof(double)];
        loops_.start(totals, columns);
        for (std::int64_t outer = 0; outer < of_.outer; ++outer)
          loops_.columns(src + ((outer * of_.kept + kept) * of_.inner * of_.columns + first) * element_,
                         of_.inner, of_.columns, columns, totals);
        for (std::int64_t column = 0; column < columns; ++column)
          store(kept * of_.columns + first + column, total_at(totals, column), dst);
      }
    });
  }

  Reduction of_;
  ReduceLoops loops_;
  std::int64_t element_;
};

std::optional<ReduceRule> rule_of(std::string_view op) {
  if (op == "sum") return ReduceRule::sum;
  if (op == "mean") return ReduceRule::mean;
  if (op == "max") return ReduceRule::max;
  if (op == "min") return ReduceRule::min;
  return std::nullopt;
}

// True if extremes may be computed in this layout. A zero of the padding could be the extreme. Among zeros the first
// one in logical order is the extreme, so the reduced elements must lie in this order.
bool suits_extremes(const Layout& layout, const Shape& shape, const Reduce& op) {
  std::vector<std::int64_t> reduced;
  for (const PhysicalAxis& axis : physical_axes(layout, shape))
    if (is_summed(op, axis.axis) && axis.extent > 1) reduced.push_back(axis.axis);
  return !has_padding(layout, shape) && std::ranges::is_sorted(reduced);
}

class ReduceSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const auto rule = rule_of(query.region.kind);
    if (!rule) return {};
    const TensorType& type = query.type(query.region.inputs[0]);
    const ReduceLoops* loops = find_reduction(*rule, type.dtype);
    if (loops == nullptr || !is_dense(query, type.dtype)) return {};
    const Layout plain = Layout::row_major(type.shape.rank());
    Layout layout = query.given[0].value_or(plain);
    const auto& op = op_cast<Reduce>(query.op());
    const bool is_sum = *rule == ReduceRule::sum || *rule == ReduceRule::mean;
    if (!is_sum && !suits_extremes(layout, type.shape, op)) layout = plain;
    auto reduction = reduction_of(layout, type.shape, op);
    if (!reduction) {
      layout = plain;
      reduction = reduction_of(layout, type.shape, op);
    }
    if (!reduction) return {};
    Candidate candidate;
    candidate.implementation = "fast";
    candidate.inputs = {layout};
    candidate.outputs = {Layout::row_major(query.type(query.region.outputs[0]).shape.rank())};
    candidate.seconds = seconds_of_traffic(query, candidate);
    candidate.make = [launch = ReduceLaunch(*reduction, *loops, size_of(type.dtype))] {
      return make_kernel([launch](const Binding& at) { launch.run(at); }, launch.workspace());
    };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_reduce_source() { return std::make_unique<ReduceSource>(); }

}  // namespace plexaura::fast
