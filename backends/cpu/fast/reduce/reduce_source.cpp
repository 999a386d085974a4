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
// The number of elements that one call sums if the result is a single number. It is fixed, so that the result
// does not depend on the number of threads.
constexpr std::int64_t piece = 16384;

// A reduction as a row-major array [outer, kept, inner, columns], which is summed over `outer` and `inner`.
struct Reduction {
  std::int64_t outer = 1;
  std::int64_t kept = 1;
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  double scale = 1;
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

// Returns nothing if the loops do not alternate as those of a Reduction do.
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
  if (op.name() == "mean") reduction->scale = 1 / averaged;
  return reduction;
}

void store(const Reduction& of, std::int64_t physical, double sum, float* dst) {
  const std::int64_t column = physical % of.padded;
  if (column < of.used) dst[physical / of.padded * of.used + column] = static_cast<float>(sum * of.scale);
}

// Sums all elements into one number.
void sum_all(const Reduction& of, const float* src, float* dst, double* partial) {
  parallel_pieces(of.pieces(), nanoseconds_per_element * piece, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      partial[i] = sum_of(src + i * piece, std::min(piece, of.inner - i * piece));
  });
  double sum = 0;
  for (std::int64_t i = 0; i < of.pieces(); ++i) sum += partial[i];
  store(of, 0, sum, dst);
}

void sum_rows(const Reduction& of, const float* src, float* dst) {
  const double cost = nanoseconds_per_element * static_cast<double>(of.outer * of.inner);
  parallel_pieces(of.kept, cost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (std::int64_t outer = 0; outer < of.outer; ++outer)
        sum += sum_of(src + (outer * of.kept + i) * of.inner, of.inner);
      store(of, i, sum, dst);
    }
  });
}

void sum_columns(const Reduction& of, const float* src, float* dst) {
  const std::int64_t tiles = (of.columns + most_columns - 1) / most_columns;
  const double cost =
      nanoseconds_per_element * static_cast<double>(of.outer * of.inner * std::min(of.columns, most_columns));
  parallel_pieces(of.kept * tiles, cost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t kept = i / tiles;
      const std::int64_t first = i % tiles * most_columns;
      const std::int64_t columns = std::min(most_columns, of.columns - first);
      double sums[most_columns] = {};
      for (std::int64_t outer = 0; outer < of.outer; ++outer)
        add_columns(src + (outer * of.kept + kept) * of.inner * of.columns + first, of.inner, of.columns,
                    columns, sums);
      for (std::int64_t column = 0; column < columns; ++column)
        store(of, kept * of.columns + first + column, sums[column], dst);
    }
  });
}

std::shared_ptr<const Kernel> make_for(const Reduction& of) {
  const auto run = [of](const Binding& at) {
    const float* src = floats(at.inputs[0]);
    float* dst = floats(at.outputs[0]);
    if (of.keeps_nothing())
      sum_all(of, src, dst, reinterpret_cast<double*>(at.workspace));
    else if (of.columns == 1)
      sum_rows(of, src, dst);
    else
      sum_columns(of, src, dst);
  };
  return make_kernel(run, of.keeps_nothing() ? static_cast<std::size_t>(of.pieces()) * sizeof(double) : 0);
}

class ReduceSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "sum" && query.region.kind != "mean") return {};
    if (!is_dense_float32(query)) return {};
    const Shape& shape = query.type(query.region.inputs[0]).shape;
    Layout layout = query.given[0].value_or(Layout::row_major(shape.rank()));
    auto reduction = reduction_of(layout, shape, op_cast<Reduce>(query.op()));
    if (!reduction) {
      layout = Layout::row_major(shape.rank());
      reduction = reduction_of(layout, shape, op_cast<Reduce>(query.op()));
    }
    if (!reduction) return {};
    Candidate candidate;
    candidate.implementation = "fast";
    candidate.inputs = {layout};
    candidate.outputs = {Layout::row_major(query.type(query.region.outputs[0]).shape.rank())};
    candidate.seconds = seconds_of_traffic(query, candidate);
    candidate.make = [of = *reduction] { return make_for(of); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_reduce_source() { return std::make_unique<ReduceSource>(); }

}  // namespace plexaura::fast
