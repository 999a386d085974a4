#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/dtype.h"

namespace plexaura {

// The extents of a tensor, outermost first. Rank 0 is a scalar; an extent of 0 makes an empty tensor. Several
// threads may read a Shape at once.
class PLEXAURA_API Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) : Shape(std::vector<std::int64_t>(extents)) {}
  // Throws UserError for a negative extent, and if the shape's bytes or strides do not fit into 64 bits.
  explicit Shape(std::vector<std::int64_t> extents);

  std::int64_t rank() const { return static_cast<std::int64_t>(extents_.size()); }
  std::int64_t operator[](std::int64_t axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  std::int64_t elements() const;  // the product of the extents; 1 for a scalar
  const std::vector<std::int64_t>& extents() const { return extents_; }
  auto begin() const { return extents_.begin(); }
  auto end() const { return extents_.end(); }

  // Returns for each axis the number of elements between two neighbours, in row-major order.
  std::vector<std::int64_t> strides() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<std::int64_t> extents_;
};

PLEXAURA_API std::string to_string(const Shape& shape);  // such as "[2,3]"

// Returns the broadcast shape by numpy's rule: shapes are aligned at the last axis, and an extent of 1 is
// repeated. Throws std::invalid_argument, whose text is only the rule, if the shapes do not match.
PLEXAURA_API Shape broadcast(const Shape& a, const Shape& b);

// Returns the axis counted from the front; a negative `axis` counts from the end. Throws
// std::invalid_argument, whose text is only the rule, if it is out of range.
PLEXAURA_API std::int64_t normalise_axis(std::int64_t axis, std::int64_t rank);

// Element type and shape: all that a graph knows about a value. Several threads may read a TensorType at
// once.
struct TensorType {
  DType dtype = DType::float32;
  Shape shape;

  std::int64_t bytes() const { return shape.elements() * static_cast<std::int64_t>(size_of(dtype)); }
  bool operator==(const TensorType&) const = default;
};

PLEXAURA_API std::string to_string(const TensorType& type);  // such as "float32[2,3]"

}  // namespace plexaura
