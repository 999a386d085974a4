#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/device/backend.h"
#include "core/device/transfer_counts.h"

namespace plexaura::cuda {

// Counts the copies between host and device, and the waits for the device. Any thread may call it.
class Transfers {
 public:
  // Add and remove pieces of device memory. The backend adds a piece after its allocation, and removes it
  // before freeing it.
  void add_memory(Address address, std::size_t bytes);
  void remove_memory(Address address);
  // True if at least one end of the copy is on the host.
  bool crosses(const std::byte* dst, const std::byte* src) const;

  void count_copies(std::uint64_t copies) { copies_ += copies; }
  void count_recorded_copies(std::uint64_t copies) { recorded_copies_ += copies; }
  void count_wait() { ++waits_; }
  TransferCounts counts() const;

 private:
  bool is_on_device(const std::byte* address) const;

  mutable std::mutex mutex_;  // guards pieces_
  std::map<const std::byte*, std::size_t> pieces_;
  std::atomic<std::uint64_t> copies_ = 0;
  std::atomic<std::uint64_t> recorded_copies_ = 0;
  std::atomic<std::uint64_t> waits_ = 0;
};

}  // namespace plexaura::cuda
