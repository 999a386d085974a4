#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "core/graph/op.h"

namespace plexaura {

// A pair of numbers along the axes H and W. A single number sets both: `.padding = 1` and `Size2d{3}` are
// square.
struct Size2d {
  std::int64_t h = 1;
  std::int64_t w = 1;

  constexpr Size2d() = default;
  constexpr Size2d(std::integral auto both) : h(both), w(both) {}
  constexpr Size2d(std::integral auto along_h, std::integral auto along_w) : h(along_h), w(along_w) {}
  constexpr bool operator==(const Size2d&) const = default;
};

template <>
struct PLEXAURA_API FieldForm<Size2d> {
  static std::vector<std::int64_t> of(Size2d size) { return {size.h, size.w}; }
  static Size2d from(const std::vector<std::int64_t>& both);
};

// How a window moves over the axes H and W of a value [N, C, H, W], in convolution and in pooling.
struct Window2d {
  Size2d kernel = {};
  Size2d stride = {};
  Size2d padding{0, 0};
  Size2d dilation = {};

  // Throws RuleError for numbers that are wrong for any input.
  void check() const;
  // Returns the number of places of the window along H and W. Throws RuleError if it does not fit even once.
  Size2d outputs(Size2d input) const;
};

inline Size2d spatial(const Shape& shape) { return {shape[2], shape[3]}; }
// Throws RuleError unless the value has the axes N, C, H and W.
void require_nchw(const TensorType& type);

}  // namespace plexaura
