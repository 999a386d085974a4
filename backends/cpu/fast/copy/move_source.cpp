#include <cstring>
#include <memory>

#include "backends/cpu/fast/copy/strided_copy.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/loops/loops.h"
#include "core/ops/concat.h"
#include "core/ops/lines.h"
#include "core/ops/shape.h"
#include "core/ops/slice.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_cleared_byte = 0.03;
constexpr std::int64_t bytes_of_cache_line = 64;

std::int64_t bytes_of_element(const TensorType& type) {
  return static_cast<std::int64_t>(size_of(type.dtype));
}

StridedCopy copy_of(std::vector<CopyLoop> loops, const TensorType& type) {
  return {std::move(loops), size_of(type.dtype)};
}

void clear(std::byte* data, std::int64_t bytes) {
  parallel_pieces(bytes, nanoseconds_per_cleared_byte, bytes_of_cache_line,
                  [=](std::int64_t begin, std::int64_t end) {
                    std::memset(data + begin, 0, static_cast<std::size_t>(end - begin));
                  });
}

std::shared_ptr<const Kernel> make_permute(const RegionQuery& query) {
  const TensorType& from = query.type(query.region.inputs[0]);
  const TensorType& to = query.type(query.region.outputs[0]);
  const auto& axes = op_cast<Permute>(query.op()).options().axes;
  std::vector<CopyLoop> loops;
  for (std::int64_t axis = 0; axis < to.shape.rank(); ++axis)
    loops.push_back({to.shape[axis], portable::stride_of(from.shape, axes[static_cast<std::size_t>(axis)]),
                     portable::stride_of(to.shape, axis)});
  return make_kernel(
      [copy = copy_of(std::move(loops), to)](const Binding& at) { copy.run(at.inputs[0], at.outputs[0]); });
}

// The loops over a slice, as [before, extent, behind]. `from` is the slice and `to` the whole value.
std::vector<CopyLoop> slice_loops(const Lines& whole, const SliceIndices& indices) {
  return {{whole.before, indices.count * whole.behind, whole.extent * whole.behind},
          {indices.count, whole.behind, indices.step * whole.behind},
          {whole.behind, 1, 1}};
}

std::shared_ptr<const Kernel> make_slice(const RegionQuery& query) {
  const TensorType& type = query.type(query.region.inputs[0]);
  const SliceOptions& options = op_cast<SliceOp>(query.op()).options();
  const std::int64_t axis = normalise_axis(options.axis, type.shape.rank());
  const SliceIndices indices = indices_of(options, type.shape.rank(), type.shape[axis]);
  const Lines whole = Lines::along(type.shape, axis);
  std::vector<CopyLoop> loops = slice_loops(whole, indices);
  for (CopyLoop& loop : loops) std::swap(loop.from, loop.to);
  const std::int64_t first = indices.start * whole.behind * bytes_of_element(type);
  return make_kernel([copy = copy_of(std::move(loops), type), first](const Binding& at) {
    copy.run(at.inputs[0] + first, at.outputs[0]);
  });
}

std::shared_ptr<const Kernel> make_slice_grad(const RegionQuery& query) {
  const TensorType& type = query.type(query.region.outputs[0]);
  const SliceGradOptions& options = op_cast<SliceGrad>(query.op()).options();
  const SliceIndices indices = indices_of(options, type.shape.rank(), options.extent);
  const Lines whole = Lines::along(type.shape, indices.axis);
  const std::int64_t first = indices.start * whole.behind * bytes_of_element(type);
  const std::int64_t to_clear = indices.count == options.extent ? 0 : type.bytes();
  return make_kernel([copy = copy_of(slice_loops(whole, indices), type), first, to_clear](const Binding& at) {
    clear(at.outputs[0], to_clear);
    copy.run(at.inputs[0], at.outputs[0] + first);
  });
}

std::shared_ptr<const Kernel> make_concat(const RegionQuery& query) {
  struct Destination {
    StridedCopy copy;
    std::int64_t first;  // offset of the first byte
  };
  const TensorType& type = query.type(query.region.outputs[0]);
  const std::int64_t axis = normalise_axis(op_cast<Concat>(query.op()).options().axis, type.shape.rank());
  const Lines whole = Lines::along(type.shape, axis);
  std::vector<Destination> parts;
  std::int64_t start = 0;
  for (const Value input : query.region.inputs) {
    const std::int64_t extent = query.type(input).shape[axis];
    parts.push_back({copy_of(slice_loops(whole, {.start = start, .step = 1, .count = extent}), type),
                     start * whole.behind * bytes_of_element(type)});
    start += extent;
  }
  return make_kernel([parts = std::move(parts)](const Binding& at) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i].copy.run(at.inputs[i], at.outputs[0] + parts[i].first);
  });
}

using MakeMove = std::shared_ptr<const Kernel> (*)(const RegionQuery& query);

MakeMove move_of(std::string_view op) {
  if (op == "permute") return make_permute;
  if (op == "slice") return make_slice;
  if (op == "slice_grad") return make_slice_grad;
  if (op == "concat") return make_concat;
  return nullptr;
}

// Offers ops that copy elements to other places, for any dtype and row-major operands.
class MoveSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const MakeMove move = move_of(query.region.kind);
    if (move == nullptr || !has_elements(query.graph, query.region.outputs[0])) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.make = [query, move] { return move(query); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_move_source() { return std::make_unique<MoveSource>(); }

}  // namespace plexaura::fast
