#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/op.h"

namespace plexaura {

// Two numbers, for the axes H and W. A single number sets both: `.padding = 1` and `Size2d{3}` are square.
struct Size2d {
  std::int64_t h = 1;
  std::int64_t w = 1;

  constexpr Size2d() = default;
  constexpr Size2d(std::integral auto both) : h(both), w(both) {}
  constexpr Size2d(std::integral auto along_h, std::integral auto along_w) : h(along_h), w(along_w) {}
  constexpr bool operator==(const Size2d&) const = default;
};

// Three numbers, for the axes D, H and W. A single number sets all three.
struct Size3d {
  std::int64_t d = 1;
  std::int64_t h = 1;
  std::int64_t w = 1;

  constexpr Size3d() = default;
  constexpr Size3d(std::integral auto all) : d(all), h(all), w(all) {}
  constexpr Size3d(std::integral auto along_d, std::integral auto along_h, std::integral auto along_w)
      : d(along_d), h(along_h), w(along_w) {}
  constexpr bool operator==(const Size3d&) const = default;
};

template <>
struct PLEXAURA_API FieldForm<Size2d> {
  static std::vector<std::int64_t> of(Size2d size) { return {size.h, size.w}; }
  static Size2d from(const std::vector<std::int64_t>& both);
};

template <>
struct PLEXAURA_API FieldForm<Size3d> {
  static std::vector<std::int64_t> of(Size3d size) { return {size.d, size.h, size.w}; }
  static Size3d from(const std::vector<std::int64_t>& all);
};

inline std::array<std::int64_t, 2> list_of(Size2d size) { return {size.h, size.w}; }
inline std::array<std::int64_t, 3> list_of(Size3d size) { return {size.d, size.h, size.w}; }

// Returns the three numbers with `d` for the axis D.
inline Size3d with_depth(Size2d size, std::int64_t d) { return {d, size.h, size.w}; }

// The movement of a window over the last axes of a value, in convolution and in pooling: over H and W of [N,
// C, H, W], or over D, H and W of [N, C, D, H, W].
template <class Size>
struct SlidingWindow {
  Size kernel = {};
  Size stride = {};
  Size padding{0};
  Size dilation = {};
  std::optional<Size> padding_end = {};  // padding at the end of each axis; by default `padding`

  // Throws RuleError for numbers that no input allows.
  void check() const;
  // Returns the number of places of the window along each axis. Throws RuleError if it does not fit even once.
  Size outputs(Size input) const;
  // Does the same as outputs(), but also counts a place at which the window reaches beyond the padding at the
  // end, if it begins before that padding.
  Size outputs_rounded_up(Size input) const;
};

extern template struct SlidingWindow<Size2d>;
extern template struct SlidingWindow<Size3d>;

using Window2d = SlidingWindow<Size2d>;
using Window3d = SlidingWindow<Size3d>;

inline Size2d spatial(const Shape& shape) { return {shape[2], shape[3]}; }
inline Size3d spatial_3d(const Shape& shape) { return {shape[2], shape[3], shape[4]}; }
// Throw RuleError unless the value has the axes N, C, H and W, or N, C, D, H and W.
void require_nchw(const TensorType& type);
void require_ncdhw(const TensorType& type);

}  // namespace plexaura
