#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/dtype.h"

namespace plexaura {

// The extents of a tensor, outermost first. Rank 0 is a scalar; an extent of 0 makes an empty tensor. A
// value; several threads may read it at once.
class PLEXAURA_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}
  // Throws UserError for a negative extent, and where its bytes or strides would be no 64-bit numbers.
  explicit Shape(std::vector<std::int64_t> extents);

  std::int64_t rank() const { return static_cast<std::int64_t>(extents_.size()); }
  std::int64_t operator[](std::int64_t axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const;  // the product of the extents; 1 for a scalar
  const std::vector<std::int64_t>& extents() const { return extents_; }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }

  // Elements to step over for one step along each axis, in row-major order.
  std::vector<std::int64_t> strides() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> extents_;
};

PLEXAURA_API std::string to_string(const Shape& shape);  // "[2,3]"

// numpy's rule: align at the last axis, an extent of 1 stretches. Throws std::invalid_argument (the bare
// rule) otherwise.
PLEXAURA_API Shape broadcast(const Shape& a, const Shape& b);

// The axis counted from the front; `axis` may be negative. Throws std::invalid_argument (the bare rule) when
// out of range.
PLEXAURA_API std::int64_t normalise_axis(std::int64_t axis, std::int64_t rank);

// Element type and shape: all that a graph knows of a value. A value itself, as Shape is.
struct TensorType {
  DType dtype = DType::float32;
  Shape shape;

  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
  bool operator==(const TensorType&) const = default;
};

PLEXAURA_API std::string to_string(const TensorType& type);  // "float32[2,3]"

}  // namespace plexaura
