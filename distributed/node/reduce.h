#pragma once

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <span>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace plexaura {

inline std::size_t bytes_of(DType dtype, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

// Throws UserError for types other than float64, float32 and int64.
void check_summable(DType dtype);

// Calls `work` with a zero of the weights' type. Throws UserError for types other than float64 and float32.
template <class Work>
void with_elements(DType dtype, Work&& work) {
  if (dtype == DType::float64) return work(double{});
  if (dtype == DType::float32) return work(float{});
  throw UserError(
      fmt::format("ranks exchange weights of float64 or float32, not {}: cast them first", name_of(dtype)));
}

// Returns the bytes as elements of type T.
template <class T, class Byte>
std::span<T> elements_of(std::span<Byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// Adds `count` elements: sum[i] += more[i].
void add(DType dtype, std::byte* sum, const std::byte* more, std::int64_t count);

// Adds `count` elements: sum[i] = first[i] + second[i]. `sum` is neither of the other arrays.
void add(DType dtype, const std::byte* first, const std::byte* second, std::byte* sum, std::int64_t count);

// A range of elements.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
// Returns the part of `count` elements for worker `index` of `workers`. Parts begin at multiples of a cache
// line.
Part part_of(std::int64_t count, DType dtype, int index, int workers);

}  // namespace plexaura
