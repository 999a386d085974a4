#include "backends/cuda/engine/promises.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>

namespace plexaura::cuda {

namespace {

bool is_kept(const Promise& promise) { return std::atomic_ref(*promise.flag).load() == promise.value; }

}  // namespace

Promise Promises::make() {
  const std::lock_guard lock(mutex_);
  auto free = std::ranges::find_if(last_, is_kept);
  if (free == last_.end()) {
    constexpr std::size_t flags_in_a_page = 1024;
    std::byte* const page = pages_.emplace_back(flags_in_a_page * sizeof(runtime::Flag)).address();
    const auto count = static_cast<std::ptrdiff_t>(last_.size());
    for (std::size_t i = 0; i < flags_in_a_page; ++i)
      last_.push_back({new (page + i * sizeof(runtime::Flag)) runtime::Flag(0), 0});
    free = last_.begin() + count;
  }
  ++free->value;
  return *free;
}

}  // namespace plexaura::cuda
