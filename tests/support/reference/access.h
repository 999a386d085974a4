#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Access to the elements of a value for the reference functions of this folder.

namespace plexaura::testing::reference {

using Index = std::vector<std::int64_t>;

// Returns the row-major position of an element. Throws InternalError if the index is outside the shape.
std::size_t place_of(const Shape& shape, std::span<const std::int64_t> index);

// Returns the element of a float64 value at an index: at(x, n, c, i, j).
template <std::convertible_to<std::int64_t>... I>
double& at(Tensor& value, I... index) {
  const std::array<std::int64_t, sizeof...(I)> list{index...};
  return value.as<double>()[place_of(value.shape(), list)];
}
template <std::convertible_to<std::int64_t>... I>
double at(const Tensor& value, I... index) {
  const std::array<std::int64_t, sizeof...(I)> list{index...};
  return value.as<double>()[place_of(value.shape(), list)];
}
double& at(Tensor& value, const Index& index);
double at(const Tensor& value, const Index& index);

// Calls body for every index of a shape, the last axis fastest.
void for_each_index(const Shape& shape, const std::function<void(const Index&)>& body);

// Returns the index of the operand's element that numpy's broadcasting uses for this index of the result.
Index before_broadcasting(const Shape& operand, const Index& index);

// Returns a float64 value of zeros.
Tensor zeros(Shape shape);

}  // namespace plexaura::testing::reference
