#include <algorithm>
#include <utility>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/softmax/softmax_grad_regions.h"
#include "backends/cpu/fast/softmax/softmax_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/lines.h"
#include "core/ops/softmax.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_exponential = 0.5;
constexpr double nanoseconds_per_line = 10;
constexpr double nanoseconds_per_element_of_grad = 0.3;

bool is_forward_op(const std::string& kind) { return kind == "softmax" || kind == "log_softmax"; }

template <class T>
struct SoftmaxLoops {
  void (*rows)(const T* x, std::int64_t rows, std::int64_t extent, T* y);
  void (*columns)(const T* x, std::int64_t extent, std::int64_t stride, std::int64_t columns, T* y);
};

template <class T>
void run_rows(const Lines& lines, const SoftmaxLoops<T>& loops, const T* x, T* y) {
  const double cost = nanoseconds_per_line + nanoseconds_per_exponential * static_cast<double>(lines.extent);
  parallel_pieces(lines.before, cost, [=](std::int64_t begin, std::int64_t end) {
    loops.rows(x + begin * lines.extent, end - begin, lines.extent, y + begin * lines.extent);
  });
}

template <class T>
void run_columns(const Lines& lines, const SoftmaxLoops<T>& loops, const T* x, T* y) {
  const std::int64_t tiles = (lines.behind + most_softmax_columns - 1) / most_softmax_columns;
  const std::int64_t width = std::min(lines.behind, most_softmax_columns);
  const double cost =
      static_cast<double>(width) *
      (nanoseconds_per_line + nanoseconds_per_exponential * static_cast<double>(lines.extent));
  parallel_pieces(lines.before * tiles, cost, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % tiles * most_softmax_columns;
      const std::int64_t first = i / tiles * lines.extent * lines.behind + column;
      loops.columns(x + first, lines.extent, lines.behind,
                    std::min(most_softmax_columns, lines.behind - column), y + first);
    }
  });
}

template <class T>
std::shared_ptr<const Kernel> make_softmax(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  const std::int64_t axis = normalise_axis(op_cast<SoftmaxOp>(query.op()).options().axis, shape.rank());
  const Lines lines = Lines::along(shape, axis);
  const SoftmaxLoops<T> loops = query.region.kind == "softmax"
                                    ? SoftmaxLoops<T>{softmax_rows, softmax_columns}
                                    : SoftmaxLoops<T>{log_softmax_rows, log_softmax_columns};
  const auto run = lines.behind == 1 ? run_rows<T> : run_columns<T>;
  return make_kernel(
      [=](const Binding& at) { run(lines, loops, elements<T>(at.inputs[0]), elements<T>(at.outputs[0])); });
}

template <class T>
std::shared_ptr<const Kernel> make_grad(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  const Lines lines = Lines::along(shape, shape.rank() - 1);
  const double cost =
      nanoseconds_per_line + nanoseconds_per_element_of_grad * static_cast<double>(lines.extent);
  using Loop = void (*)(const T* y, const T* grad, std::int64_t rows, std::int64_t extent, T* result);
  const Loop loop = query.region.kind == softmax_grad ? Loop{softmax_grad_rows} : Loop{log_softmax_grad_rows};
  return make_kernel([=](const Binding& at) {
    parallel_pieces(lines.before, cost, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * lines.extent;
      loop(elements<T>(at.inputs[0]) + first, elements<T>(at.inputs[1]) + first, end - begin, lines.extent,
           elements<T>(at.outputs[0]) + first);
    });
  });
}

template <class T>
std::shared_ptr<const Kernel> make_for(const RegionQuery& query, bool is_forward) {
  return is_forward ? make_softmax<T>(query) : make_grad<T>(query);
}

class SoftmaxSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses&) const override {
    std::vector<Region> found = match_softmax_grad(graph, last);
    return found.empty() ? match_log_softmax_grad(graph, last) : found;
  }

  bool knows(const std::string& kind) const override {
    return is_forward_op(kind) || kind == softmax_grad || kind == log_softmax_grad;
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!knows(query.region.kind)) return {};
    const bool is_forward = is_forward_op(query.region.kind);
    const bool is_double = is_dense(query, DType::float64);
    if (!is_double && !is_dense_float32(query)) return {};
    Candidate candidate = row_major_candidate(query);
    for (std::size_t i = 0; i < query.region.inputs.size(); ++i) candidate.in_place.emplace_back(0, i);
    candidate.make = [query, is_forward, is_double] {
      return is_double ? make_for<double>(query, is_forward) : make_for<float>(query, is_forward);
    };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_softmax_source() { return std::make_unique<SoftmaxSource>(); }

}  // namespace plexaura::fast
