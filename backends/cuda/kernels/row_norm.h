#pragma once

#include <type_traits>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/kernels/channels.h"
#include "backends/cuda/kernels/element.h"
#include "backends/cuda/kernels/several.h"
#include "backends/cuda/regions/fused_row_norm.h"

// The parts that the kernels of normalisations of rows and those of their gradients share.

namespace plexaura::cuda {

// A scale or a shift. The element of row r at a place has element (place + offset_of(r)) / run of it.
template <class R>
struct RowScale {
  Global<const R> values;  // its address is null if there is none
  std::int64_t extent;
  std::int64_t run;
  std::int64_t groups;

  PLEXAURA_DEVICE std::int64_t offset_of(std::int64_t row) const {
    return (groups == 1 ? -row : -quotient(row, groups) * groups) * extent;
  }
  // Returns the numbers of a group of elements, whose first one has number `i` / run; `otherwise` if there are none.
  template <int width>
  PLEXAURA_DEVICE Several<R, width> at(std::int64_t i, R otherwise) const {
    if (values && run == 1) return values.template several<width>(i);
    Several<R, width> same;
    const R value = values ? static_cast<R>(values[quotient(i, run)]) : otherwise;
    for (int k = 0; k < width; ++k) same[k] = value;
    return same;
  }
};

template <class T, class R, int width>
PLEXAURA_DEVICE inline Several<T, width> narrowed(const Several<R, width>& values) {
  Several<T, width> narrow_ones;
  for (int k = 0; k < width; ++k) narrow_ones[k] = narrow<T>(values[k]);
  return narrow_ones;
}

template <class T, int width>
PLEXAURA_DEVICE inline void store_if(const Global<T>& dst, std::int64_t place,
                                     const Several<T, width>& values) {
  if (dst) dst.set_several(place, values);
}

// Calls f(std::type_identity<A>(), std::type_identity<B>()) for two dtypes that are computed in the same type: they are
// equal, or one is float32 and the other has 16 bits.
template <class F>
void dispatch_two(DType a, DType b, const F& f) {
  const DType narrow_one = size_of(a) == 2 ? a : b;
  dispatch_floating(narrow_one, [&]<class T>(std::type_identity<T> type) {
    if (a == b) return f(type, type);
    if constexpr (is_half<T>)
      size_of(a) == 2 ? f(type, std::type_identity<float>()) : f(std::type_identity<float>(), type);
  });
}

// Calls f(Width<n>()) with the number of elements that a thread reads at once: the most, or one.
template <int most, class F>
void dispatch_width(const RowNormShape& shape, const F& f) {
  const bool are_groups = shape.extent % most == 0 && (shape.run == 1 || shape.run % most == 0);
  are_groups ? f(Width<most>()) : f(Width<1>());
}

// Views of operands that the region may not have.
template <class T>
Global<const T> in_if(const View& view) {
  return view.type == nullptr ? Global<const T>(nullptr, 0) : view.in<T>();
}
template <class T>
Global<T> out_if(const View& view) {
  return view.type == nullptr ? Global<T>() : view.out<T>();
}

template <class R>
RowScale<R> scale_of(const RowNormShape& shape, const View& view) {
  return {in_if<R>(view), shape.extent, shape.run, shape.groups};
}

inline RowNormShape shape_of(const RowNormValues<View>& of, const View& result) {
  return *row_norm_shape(*result.type, *of.root.type, of.scale.type);
}

}  // namespace plexaura::cuda
