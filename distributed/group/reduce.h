#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace plexaura {

inline std::size_t bytes_of(DType dtype, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

// Throws UserError for a type that is not summed over ranks: float64, float32 and int64 are.
void check_summable(DType dtype);

// sum[i] += more[i]
void add(DType dtype, std::byte* sum, const std::byte* more, std::int64_t count);

// sum[i] = first[i] + second[i]; `sum` is neither of them.
void add(DType dtype, const std::byte* first, const std::byte* second, std::byte* sum, std::int64_t count);

// The part of `count` elements that worker `index` of `workers` takes: [first, first + count), cut at cache
// lines.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
Part part_of(std::int64_t count, DType dtype, int index, int workers);

}  // namespace plexaura
