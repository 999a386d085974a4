#include "backends/cuda/engine/transfers.h"

#include <iterator>

namespace plexaura::cuda {

void Transfers::add_memory(Address address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  pieces_.emplace(address, bytes);
}

void Transfers::remove_memory(Address address) {
  const std::lock_guard lock(mutex_);
  pieces_.erase(address);
}

bool Transfers::crosses(const std::byte* dst, const std::byte* src) const {
  const std::lock_guard lock(mutex_);
  return !is_on_device(dst) || !is_on_device(src);
}

TransferCounts Transfers::counts() const {
  const std::uint64_t recorded = recorded_copies_;
  return {.copies = copies_ + recorded, .recorded_copies = recorded, .waits = waits_};
}

bool Transfers::is_on_device(const std::byte* address) const {
  const auto behind = pieces_.upper_bound(address);
  if (behind == pieces_.begin()) return false;
  const auto& [begin, bytes] = *std::prev(behind);
  return address < begin + bytes;
}

}  // namespace plexaura::cuda
