#include "core/tensor/shape.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "core/base/error.h"

namespace plexaura {

namespace {

// True if elements, strides and bytes fit into 64 bits for any dtype. An extent of 0 counts as 1, since other
// code computes strides so.
bool countable(const std::vector<std::int64_t>& extents) {
  std::int64_t bytes = 8;
  return std::ranges::none_of(extents, [&](std::int64_t extent) {
    return __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
  });
}

}  // namespace

Shape::Shape(std::vector<std::int64_t> extents) : extents_(std::move(extents)) {
  if (std::ranges::any_of(extents_, [](std::int64_t extent) { return extent < 0; }))
    throw UserError(
        fmt::format("the shape {} has a negative extent; extents are 0 or more", to_string(*this)));
  if (!countable(extents_))
    throw UserError(fmt::format("the shape {} has more bytes than a 64-bit number can count; make it smaller",
                                to_string(*this)));
}

std::int64_t Shape::elements() const {
  return std::accumulate(begin(), end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::int64_t> Shape::strides() const {
  std::vector<std::int64_t> strides(extents_.size());
  std::int64_t step = 1;
  for (std::size_t axis = extents_.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= extents_[axis];
  }
  return strides;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.extents(), ",")); }

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", name_of(type.dtype), to_string(type.shape));
}

Shape broadcast(const Shape& a, const Shape& b) {
  const std::int64_t rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank));
  for (std::int64_t back = 1; back <= rank; ++back) {
    const std::int64_t of_a = back <= a.rank() ? a[a.rank() - back] : 1;
    const std::int64_t of_b = back <= b.rank() ? b[b.rank() - back] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1)
      throw std::invalid_argument(
          fmt::format("{} and {} do not broadcast: counted from the last axis, extents must be equal or 1 "
                      "(axis -{}: {} and {}); reshape one of them",
                      to_string(a), to_string(b), back, of_a, of_b));
    extents[static_cast<std::size_t>(rank - back)] = of_a == 1 ? of_b : of_a;
  }
  return Shape(std::move(extents));
}

std::int64_t normalise_axis(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw std::invalid_argument(fmt::format(
        "axis {} does not exist in a value of rank {}; name one from {} to {}", axis, rank, -rank, rank - 1));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace plexaura
