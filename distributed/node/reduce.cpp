#include "distributed/node/reduce.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {
namespace {

constexpr std::int64_t cache_line = 64;

template <class T>
void add_typed(std::byte* sum, const std::byte* more, std::int64_t count) {
  T* __restrict to = reinterpret_cast<T*>(sum);
  const T* __restrict from = reinterpret_cast<const T*>(more);
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

template <class T>
void add_typed(const std::byte* first, const std::byte* second, std::byte* sum, std::int64_t count) {
  T* __restrict to = reinterpret_cast<T*>(sum);
  const T* left = reinterpret_cast<const T*>(first);
  const T* right = reinterpret_cast<const T*>(second);
  for (std::int64_t i = 0; i < count; ++i) to[i] = left[i] + right[i];
}

// Calls `work` with a value of the type in which the sum is computed. int64 is added as uint64, because
// signed overflow is undefined.
template <class Work>
void with_type(DType dtype, Work&& work) {
  if (dtype == DType::float64) return work(double{});
  if (dtype == DType::float32) return work(float{});
  if (dtype == DType::int64) return work(std::uint64_t{});
  check_summable(dtype);
}

}  // namespace

void check_summable(DType dtype) {
  if (dtype == DType::float64 || dtype == DType::float32 || dtype == DType::int64) return;
  throw UserError(
      fmt::format("a sum over ranks takes float64, float32 or int64, not {}: cast first", name_of(dtype)));
}

void add(DType dtype, std::byte* sum, const std::byte* more, std::int64_t count) {
  with_type(dtype, [&](auto type) { add_typed<decltype(type)>(sum, more, count); });
}

void add(DType dtype, const std::byte* first, const std::byte* second, std::byte* sum, std::int64_t count) {
  with_type(dtype, [&](auto type) { add_typed<decltype(type)>(first, second, sum, count); });
}

Part part_of(std::int64_t count, DType dtype, int index, int workers) {
  const std::int64_t granule = cache_line / static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t granules = (count + granule - 1) / granule;
  const auto cut = [&](std::int64_t i) { return std::min(count, granules * i / workers * granule); };
  return {cut(index), cut(index + 1) - cut(index)};
}

}  // namespace plexaura
