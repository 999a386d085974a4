#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/kernels/block.h"
#include "core/tensor/shape.h"

namespace plexaura::cuda {

// The largest number of axes for which the plugin offers kernels.
constexpr int most_axes = 8;

// Maps the index of an element in a row-major shape to its places in several operands. Each operand has a
// stride for each axis, 0 if it is broadcast along it. Neighbouring axes are merged if all operands allow it.
template <int operands>
struct Strides {
  std::int64_t extents[most_axes] = {};
  std::int64_t strides[most_axes][operands] = {};
  int rank = 0;

  // Adds an axis after the others.
  void add_axis(std::int64_t extent, const std::array<std::int64_t, operands>& of_operands) {
    if (extent == 1) return;
    if (rank > 0 && merges(extent, of_operands)) {
      extents[rank - 1] *= extent;
      std::copy_n(of_operands.begin(), operands, strides[rank - 1]);
      return;
    }
    extents[rank] = extent;
    std::copy_n(of_operands.begin(), operands, strides[rank]);
    ++rank;
  }

  // True if each operand has `count` consecutive elements, or one that stands for all, for each group of
  // `count` elements whose first index is a multiple of it, and if these begin at a multiple of it, too.
  bool has_groups_of(std::int64_t count) const {
    if (rank > 1 && extents[rank - 1] % count != 0) return false;
    for (int operand = 0; rank > 0 && operand < operands; ++operand) {
      if (strides[rank - 1][operand] > 1 || strides[rank - 1][operand] < 0) return false;
      for (int axis = 0; axis < rank - 1; ++axis)
        if (!repeats(operand) && strides[axis][operand] % count != 0) return false;
    }
    return true;
  }

  // Returns the operand's elements for a group, which lie in `values` from `begin` on. The group has one
  // element or fulfils has_groups_of().
  template <int operand, int count, class T>
  PLEXAURA_DEVICE Several<T, count> group(const Global<const T>& values, std::int64_t first,
                                          std::int64_t begin = 0) const {
    const std::int64_t from = begin + place<operand>(first);
    if constexpr (count > 1) {
      if (!repeats(operand)) return values.template several<count>(from);
    }
    Several<T, count> same;
    const T value = values[from];
    for (int k = 0; k < count; ++k) same[k] = value;
    return same;
  }

  template <int operand = 0>
  PLEXAURA_DEVICE std::int64_t place(std::int64_t element) const {
    std::int64_t place = 0;
    PLEXAURA_ROLLED
    for (int axis = rank; axis-- > 1;) {
      const std::int64_t rest = element / extents[axis];
      place += (element - rest * extents[axis]) * strides[axis][operand];
      element = rest;
    }
    return rank == 0 ? 0 : place + element * strides[0][operand];
  }

 private:
  // True if neighbours along the last axis share an element of the operand.
  PLEXAURA_HD bool repeats(int operand) const { return rank > 0 && strides[rank - 1][operand] == 0; }

  bool merges(std::int64_t extent, const std::array<std::int64_t, operands>& of_operands) const {
    for (int i = 0; i < operands; ++i)
      if (strides[rank - 1][i] != extent * of_operands[static_cast<std::size_t>(i)]) return false;
    return true;
  }
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

// Returns the strides of operands that are broadcast to the shape of a result.
template <class... Shapes>
Strides<sizeof...(Shapes)> broadcast_strides(const Shape& result, const Shapes&... shapes) {
  Strides<sizeof...(Shapes)> strides;
  for (std::int64_t axis = 0; axis < result.rank(); ++axis)
    strides.add_axis(result[axis], {broadcast_stride(shapes, result, axis)...});
  return strides;
}

}  // namespace plexaura::cuda
