#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "core/device/backend.h"

namespace plexaura::far_device {

// The memory of the far device. Its addresses lie in a reserved range where every access faults; the real
// bytes lie a secret offset away, which only the device adds. Pieces are pages with a guard page behind them.
// Fresh and freed memory, staging memory too, is filled with ones: NaN in every float type. From one thread
// at a time, but for real addresses once resolved.
class FarMemoryMap {
 public:
  FarMemoryMap();
  ~FarMemoryMap();
  FarMemoryMap(const FarMemoryMap&) = delete;
  FarMemoryMap& operator=(const FarMemoryMap&) = delete;

  Address allocate_device(std::size_t bytes);  // throws DeviceError when the range is full
  void free_device(Address address);
  Address allocate_staging(std::size_t bytes);
  void free_staging(Address address);

  // The real place of bytes that lie in one live piece of device memory. Throws InternalError for any other
  // address, but for no bytes at all, whose place is null.
  std::byte* resolve(const std::byte* address, std::size_t bytes) const;
  // Of a place that resolve() gave.
  const std::byte* address_of(const std::byte* place) const;
  bool is_staging(const std::byte* address, std::size_t bytes) const;

 private:
  using Pieces = std::map<std::size_t, std::size_t>;  // offset -> bytes

  Pieces::iterator find_room(std::size_t bytes);
  void give_room(std::size_t offset, std::size_t bytes);

  Address far_;      // faults
  std::byte* near_;  // real, readable where something was allocated
  Pieces free_;      // whole pages, neighbours merged
  Pieces live_;      // bytes as asked for
  std::map<const std::byte*, std::size_t> staging_;
};

// One piece of it, freed with the object.
class FarMemory final : public Memory {
 public:
  FarMemory(std::shared_ptr<FarMemoryMap> map, std::size_t bytes, MemoryUse use);
  ~FarMemory() override;
  FarMemory(const FarMemory&) = delete;
  FarMemory& operator=(const FarMemory&) = delete;

  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<FarMemoryMap> map_;
  std::size_t bytes_;
  MemoryUse use_;
  Address address_;
};

}  // namespace plexaura::far_device
