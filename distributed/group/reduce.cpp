#include "distributed/group/reduce.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

#include "core/error.h"

namespace plexaura {
namespace {

constexpr std::int64_t cache_line = 64;
constexpr std::int64_t block_bytes = 8192;  // bytes; with one more array it stays in the first cache

template <class T>
void add_typed(std::byte* sum, const std::byte* more, std::int64_t count) {
  T* __restrict to = reinterpret_cast<T*>(sum);
  const T* __restrict from = reinterpret_cast<const T*>(more);
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

std::int64_t bytes(DType dtype, std::int64_t count) {
  return count * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace

void check_summable(DType dtype) {
  if (dtype == DType::float64 || dtype == DType::float32 || dtype == DType::int64) return;
  throw UserError(
      fmt::format("a sum over ranks takes float64, float32 or int64, not {}: cast first", name_of(dtype)));
}

void add(DType dtype, std::byte* sum, const std::byte* more, std::int64_t count) {
  switch (dtype) {
    case DType::float64:
      return add_typed<double>(sum, more, count);
    case DType::float32:
      return add_typed<float>(sum, more, count);
    case DType::int64:
      return add_typed<std::uint64_t>(sum, more, count);  // unsigned: wraps instead of being undefined
    default:
      check_summable(dtype);
  }
}

void sum_in_place(DType dtype, std::span<std::byte* const> arrays, std::int64_t count) {
  alignas(cache_line) std::array<std::byte, block_bytes> block;
  const std::int64_t total = bytes(dtype, count);
  for (std::int64_t begin = 0; begin < total; begin += block_bytes) {
    const std::int64_t length = std::min(block_bytes, total - begin);
    std::memcpy(block.data(), arrays[0] + begin, static_cast<std::size_t>(length));
    for (std::byte* array : arrays.subspan(1)) {
      add(dtype, block.data(), array + begin, length / static_cast<std::int64_t>(size_of(dtype)));
    }
    for (std::byte* array : arrays)
      std::memcpy(array + begin, block.data(), static_cast<std::size_t>(length));
  }
}

Part part_of(std::int64_t count, DType dtype, int index, int workers) {
  const std::int64_t granule = cache_line / static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t granules = (count + granule - 1) / granule;
  const auto cut = [&](std::int64_t i) { return std::min(count, granules * i / workers * granule); };
  return {cut(index), cut(index + 1) - cut(index)};
}

}  // namespace plexaura
