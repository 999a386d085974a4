#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/index/index_loops.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/ops/gather.h"
#include "core/ops/indexing.h"
#include "core/ops/indices.h"
#include "core/ops/lines.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_byte = 0.05;
constexpr double nanoseconds_per_index = 1;

// Throws the error of the reference kernels for an index that is not from 0 to extent - 1.
class IndexCheck {
 public:
  IndexCheck(TensorType indices, std::int64_t extent) : type_(std::move(indices)), extent_(extent) {}

  void check(Address indices) const {
    if (!all_inside(reinterpret_cast<const std::int64_t*>(indices), type_.shape.elements(), extent_))
      require_inside({indices, &type_}, extent_);
  }

 private:
  TensorType type_;
  std::int64_t extent_;
};

// Rows of neighbouring elements at `count` indices of an axis. A value is viewed as [before, extent, behind], and the
// rows that are selected from it as [before, count, behind].
struct SelectedRows {
  std::int64_t before;
  std::int64_t extent;
  std::int64_t behind;
  std::int64_t count;
};

template <class Bits>
void copy_rows(const SelectedRows& rows, const Bits* src, const std::int64_t* indices, Bits* dst) {
  const double cost =
      nanoseconds_per_index + nanoseconds_per_byte * static_cast<double>(rows.behind) * sizeof(Bits);
  parallel_pieces(rows.before * rows.count, cost, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t outer = begin / rows.count;
      const std::int64_t first = begin % rows.count;
      const std::int64_t last = std::min(rows.count, first + end - begin);
      const Bits* from = src + outer * rows.extent * rows.behind;
      Bits* to = dst + outer * rows.count * rows.behind;
      if (rows.behind == 1)
        take_elements({{.extent = rows.count}, rows.extent, indices}, from, to, first, last);
      else
        for (std::int64_t i = first; i < last; ++i)
          std::memcpy(to + i * rows.behind, from + indices[i] * rows.behind,
                      static_cast<std::size_t>(rows.behind) * sizeof(Bits));
      begin += last - first;
    }
  });
}

// Adds up, for each row of the result, the rows of `src` with its index, in their order. A thread computes some columns
// of the result, or the results for some of the outer indices, so that the bits do not depend on the number of threads.
template <class T>
void add_rows(const SelectedRows& rows, const T* src, const std::int64_t* indices, T* dst) {
  constexpr std::int64_t narrowest = 16;  // least number of columns of a thread
  const std::int64_t pieces = rows.before > 1 ? 1 : (rows.behind + narrowest - 1) / narrowest;
  const std::int64_t width = (rows.behind + pieces - 1) / pieces;
  const double cost =
      (nanoseconds_per_index + nanoseconds_per_byte * static_cast<double>(width) * sizeof(T)) *
      static_cast<double>(rows.count + rows.extent);
  parallel_pieces(rows.before * pieces, cost, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = pieces == 1 ? 0 : begin * width;
    const std::int64_t columns = pieces == 1 ? rows.behind : std::min(rows.behind, end * width) - first;
    if (columns <= 0) return;
    for (std::int64_t outer = begin / pieces; outer <= (end - 1) / pieces; ++outer) {
      const T* from = src + outer * rows.count * rows.behind + first;
      T* to = dst + outer * rows.extent * rows.behind + first;
      if (columns == rows.behind)
        std::fill_n(to, rows.extent * columns, T(0));
      else
        for (std::int64_t row = 0; row < rows.extent; ++row)
          std::fill_n(to + row * rows.behind, columns, T(0));
      if (rows.behind == 1)
        add_elements({{.extent = rows.count}, rows.extent, indices}, from, to, 0, 1);
      else
        for (std::int64_t i = 0; i < rows.count; ++i)
          add_row(from + i * rows.behind, to + indices[i] * rows.behind, columns);
    }
  });
}

// Calls body(begin, end) for the groups of lines, on some threads. A line belongs to one thread, so that its elements
// are in order.
template <class Body>
void for_groups(const IndexedLines& at, const Body& body) {
  const std::int64_t width = std::min(at.lines.behind, IndexedLines::width);
  parallel_pieces(at.groups(), nanoseconds_per_index * static_cast<double>(at.lines.extent * width), body);
}

// Calls f with an unsigned integer as wide as an element.
template <class F>
void with_bits_of(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f(std::type_identity<std::uint8_t>{});
    case 2:
      return f(std::type_identity<std::uint16_t>{});
    case 4:
      return f(std::type_identity<std::uint32_t>{});
    default:
      return f(std::type_identity<std::uint64_t>{});
  }
}

const std::int64_t* index_at(const Binding& at) {
  return reinterpret_cast<const std::int64_t*>(at.inputs[1]);
}

SelectedRows rows_of(const Shape& whole, std::int64_t axis, const Shape& indices) {
  const Lines lines = Lines::along(whole, axis);
  return {lines.before, lines.extent, lines.behind, indices.elements()};
}

std::shared_ptr<const Kernel> make_gather(const RegionQuery& query) {
  const TensorType& x = query.type(query.region.inputs[0]);
  const TensorType& indices = query.type(query.region.inputs[1]);
  const std::int64_t axis = normalise_axis(op_cast<Gather>(query.op()).options().axis, x.shape.rank());
  const SelectedRows rows = rows_of(x.shape, axis, indices.shape);
  return make_kernel([rows, dtype = x.dtype, check = IndexCheck(indices, rows.extent)](const Binding& at) {
    check.check(at.inputs[1]);
    with_bits_of(dtype, [&]<class Bits>(std::type_identity<Bits>) {
      copy_rows(rows, elements<Bits>(at.inputs[0]), index_at(at), elements<Bits>(at.outputs[0]));
    });
  });
}

std::shared_ptr<const Kernel> make_gather_grad(const RegionQuery& query) {
  const TensorType& result = query.type(query.region.outputs[0]);
  const TensorType& indices = query.type(query.region.inputs[1]);
  const SelectedRows rows =
      rows_of(result.shape, op_cast<GatherGrad>(query.op()).options().axis, indices.shape);
  return make_kernel(
      [rows, dtype = result.dtype, check = IndexCheck(indices, rows.extent)](const Binding& at) {
        check.check(at.inputs[1]);
        const auto add = [&]<class T>(std::type_identity<T>) {
          add_rows(rows, elements<T>(at.inputs[0]), index_at(at), elements<T>(at.outputs[0]));
        };
        dtype == DType::float32 ? add(std::type_identity<float>{}) : add(std::type_identity<double>{});
      });
}

std::shared_ptr<const Kernel> make_take(const RegionQuery& query) {
  const TensorType& x = query.type(query.region.inputs[0]);
  const TensorType& indices = query.type(query.region.inputs[1]);
  const std::int64_t axis = op_cast<TakeAlongAxis>(query.op()).options().axis;
  const std::int64_t extent = x.shape[axis];
  return make_kernel([lines = Lines::along(indices.shape, axis), extent, dtype = x.dtype,
                      check = IndexCheck(indices, extent)](const Binding& at) {
    check.check(at.inputs[1]);
    with_bits_of(dtype, [&]<class Bits>(std::type_identity<Bits>) {
      const IndexedLines places{lines, extent, index_at(at)};
      parallel_pieces(
          lines.count() * lines.extent, nanoseconds_per_index, [&](std::int64_t begin, std::int64_t end) {
            take_elements(places, elements<Bits>(at.inputs[0]), elements<Bits>(at.outputs[0]), begin, end);
          });
    });
  });
}

std::shared_ptr<const Kernel> make_take_grad(const RegionQuery& query) {
  const TensorType& result = query.type(query.region.outputs[0]);
  const TensorType& indices = query.type(query.region.inputs[1]);
  const std::int64_t axis = op_cast<TakeAlongAxisGrad>(query.op()).options().axis;
  const std::int64_t extent = result.shape[axis];
  return make_kernel([lines = Lines::along(indices.shape, axis), extent, result,
                      check = IndexCheck(indices, extent)](const Binding& at) {
    check.check(at.inputs[1]);
    std::memset(at.outputs[0], 0, static_cast<std::size_t>(result.bytes()));
    const auto add = [&]<class T>(std::type_identity<T>) {
      const IndexedLines places{lines, extent, index_at(at)};
      for_groups(places, [&](std::int64_t begin, std::int64_t end) {
        add_elements(places, elements<T>(at.inputs[0]), elements<T>(at.outputs[0]), begin, end);
      });
    };
    result.dtype == DType::float32 ? add(std::type_identity<float>{}) : add(std::type_identity<double>{});
  });
}

std::shared_ptr<const Kernel> make_scatter(const RegionQuery& query) {
  const TensorType& result = query.type(query.region.outputs[0]);
  const TensorType& indices = query.type(query.region.inputs[1]);
  const std::int64_t axis = op_cast<Scatter>(query.op()).options().axis;
  const std::int64_t extent = result.shape[axis];
  return make_kernel([lines = Lines::along(indices.shape, axis), extent, result,
                      check = IndexCheck(indices, extent)](const Binding& at) {
    check.check(at.inputs[1]);
    std::memcpy(at.outputs[0], at.inputs[0], static_cast<std::size_t>(result.bytes()));
    with_bits_of(result.dtype, [&]<class Bits>(std::type_identity<Bits>) {
      const IndexedLines places{lines, extent, index_at(at)};
      for_groups(places, [&](std::int64_t begin, std::int64_t end) {
        put_elements(places, elements<Bits>(at.inputs[2]), elements<Bits>(at.outputs[0]), begin, end);
      });
    });
  });
}

using MakeIndexed = std::shared_ptr<const Kernel> (*)(const RegionQuery& query);

// True if x and the indices broadcast along no axis.
bool has_equal_lines(const RegionQuery& query) {
  const Shape& x = query.type(query.region.inputs[0]).shape;
  const Shape& indices = query.type(query.region.inputs[1]).shape;
  const std::int64_t axis = op_cast<TakeAlongAxis>(query.op()).options().axis;
  for (std::int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && x[i] != indices[i]) return false;
  return true;
}

MakeIndexed kernel_for(const RegionQuery& query) {
  const std::string_view op = query.region.kind;
  const DType dtype = query.type(query.region.outputs[0]).dtype;
  const bool is_summed = dtype == DType::float32 || dtype == DType::float64;
  if (op == "gather") return make_gather;
  if (op == "gather_grad" && is_summed) return make_gather_grad;
  if (op == "take_along_axis" && has_equal_lines(query)) return make_take;
  if (op == "take_along_axis_grad" && is_summed) return make_take_grad;
  if (op == "scatter") return make_scatter;
  return nullptr;
}

// Offers ops that read or write elements at indices, for row-major operands.
class IndexSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const MakeIndexed make = kernel_for(query);
    if (make == nullptr || !has_elements(query.graph, query.region.outputs[0])) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.make = [query, make] { return make(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_index_source() { return std::make_unique<IndexSource>(); }

}  // namespace plexaura::fast
