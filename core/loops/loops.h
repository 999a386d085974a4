#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/loops/denormals.h"
#include "core/tensor/shape.h"

namespace plexaura::portable {

// Calls body(i) for i in [0, count), on several threads if that is faster. The calls must not depend on each
// other. `cost` is the approximate number of elementary operations of one call. Results are the same for any
// number of threads. All threads treat denormals as the calling thread does.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t cost, const Body& body) {
#ifdef _OPENMP
  constexpr std::int64_t worth_a_team = 1 << 15;
  const Denormals denormals = denormals_here();
  const DenormalScope of_new_threads(Denormals::flushed);
#pragma omp parallel if (count > 1 && count * cost > worth_a_team)
  {
    const DenormalScope of_body(denormals);
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) body(i);
  }
#else
  static_cast<void>(cost);
  for (std::int64_t i = 0; i < count; ++i) body(i);
#endif
}

// Calls body(begin, end) for consecutive pieces of [0, count).
template <class Body>
void parallel_pieces(std::int64_t count, std::int64_t cost, const Body& body) {
  constexpr std::int64_t piece = 1 << 13;
  parallel_for((count + piece - 1) / piece, piece * cost,
               [&](std::int64_t i) { body(i * piece, std::min(count, (i + 1) * piece)); });
}

// Visits the elements of a row-major shape together with the corresponding elements of several operands. Each
// operand has a stride for each axis, 0 if it is broadcast along it. Neighbouring axes are merged if all
// operands allow it, so that inner runs are long. Allocates nothing.
template <std::size_t operands>
class StridedWalk {
 public:
  using Offsets = std::array<std::int64_t, operands>;

  explicit StridedWalk(std::int64_t elements) : elements_(elements) {}

  // Adds an axis after the others. The product of all extents must be `elements`. `strides` has one entry for
  // each operand.
  void add_axis(std::int64_t extent, const Offsets& strides) {
    if (extent == 1) return;
    if (rank_ > 0 && merges(extent, strides)) {
      extents_[rank_ - 1] *= extent;
      strides_[rank_ - 1] = strides;
      return;
    }
    if (rank_ == max_rank)
      throw UserError("a value has more axes than the portable kernels walk over (32 that cannot be merged)");
    extents_[rank_] = extent;
    strides_[rank_] = strides;
    ++rank_;
  }

  std::int64_t elements() const { return elements_; }
  // Returns the stride of each operand along a run.
  Offsets run_strides() const { return rank_ == 0 ? Offsets{} : strides_[rank_ - 1]; }

  // Calls body(first, offsets, length) for runs along the innermost axis, which together are the elements
  // [begin, end).
  template <class Body>
  void runs(std::int64_t begin, std::int64_t end, const Body& body) const {
    if (begin >= end) return;
    std::array<std::int64_t, max_rank> place{};
    Offsets offsets{};
    locate(begin, place, offsets);
    const std::int64_t inner = rank_ == 0 ? 1 : extents_[rank_ - 1];
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t done = rank_ == 0 ? 0 : place[rank_ - 1];
      const std::int64_t length = std::min(inner - done, end - at);
      body(at, offsets, length);
      at += length;
      if (at < end) advance(length, place, offsets);
    }
  }

 private:
  static constexpr std::size_t max_rank = 32;

  bool merges(std::int64_t extent, const Offsets& strides) const {
    for (std::size_t i = 0; i < operands; ++i)
      if (strides_[rank_ - 1][i] != extent * strides[i]) return false;
    return true;
  }

  void locate(std::int64_t at, std::array<std::int64_t, max_rank>& place, Offsets& offsets) const {
    for (std::size_t axis = rank_; axis-- > 0;) {
      place[axis] = at % extents_[axis];
      at /= extents_[axis];
      for (std::size_t i = 0; i < operands; ++i) offsets[i] += place[axis] * strides_[axis][i];
    }
  }

  void advance(std::int64_t length, std::array<std::int64_t, max_rank>& place, Offsets& offsets) const {
    std::int64_t step = length;
    for (std::size_t axis = rank_; axis-- > 0; step = 1) {
      place[axis] += step;
      for (std::size_t i = 0; i < operands; ++i) offsets[i] += step * strides_[axis][i];
      if (place[axis] < extents_[axis]) return;
      for (std::size_t i = 0; i < operands; ++i) offsets[i] -= place[axis] * strides_[axis][i];
      place[axis] = 0;
    }
  }

  std::int64_t elements_;
  std::size_t rank_ = 0;
  std::array<std::int64_t, max_rank> extents_{};
  std::array<Offsets, max_rank> strides_{};
};

// Returns the number of elements between two neighbours along the axis in a row-major value of this shape.
inline std::int64_t stride_of(const Shape& shape, std::int64_t axis) {
  std::int64_t stride = 1;
  for (std::int64_t behind = axis + 1; behind < shape.rank(); ++behind) stride *= shape[behind];
  return stride;
}

// Returns the stride of an operand along an axis of the shape that it is broadcast to.
inline std::int64_t broadcast_stride(const Shape& operand, const Shape& result, std::int64_t axis) {
  const std::int64_t own = axis - (result.rank() - operand.rank());
  return own < 0 || operand[own] == 1 ? 0 : stride_of(operand, own);
}

// Returns the walk over a result and operands that are broadcast to it.
template <class... Shapes>
StridedWalk<sizeof...(Shapes)> broadcast_walk(const Shape& result, const Shapes&... shapes) {
  StridedWalk<sizeof...(Shapes)> walk(result.elements());
  for (std::int64_t axis = 0; axis < result.rank(); ++axis)
    walk.add_axis(result[axis], {broadcast_stride(shapes, result, axis)...});
  return walk;
}

// Copies src[i * src_step] to dst[i * dst_step] for i in [0, count). src and dst do not overlap.
template <class T>
void copy_run(T* dst, std::int64_t dst_step, const T* src, std::int64_t src_step, std::int64_t count) {
  if (dst_step == 1 && src_step == 1)
    std::copy_n(src, count, dst);
  else if (dst_step == 1 && src_step == 0)
    std::fill_n(dst, count, *src);
  else
    for (std::int64_t i = 0; i < count; ++i) dst[i * dst_step] = src[i * src_step];
}

}  // namespace plexaura::portable
