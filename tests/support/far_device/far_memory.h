#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "core/device/backend.h"

namespace plexaura::far_device {

// The memory of the far device. Its addresses are in a reserved range where every access faults. The real
// bytes are at a secret offset, which only the device adds. Pieces are whole pages followed by a guard page.
// New and freed memory, including staging memory, is filled with ones: NaN in every floating dtype. Only one
// thread at a time may call it, but real addresses may be used by any thread.
class FarMemoryMap {
 public:
  FarMemoryMap();
  ~FarMemoryMap();
  FarMemoryMap(const FarMemoryMap&) = delete;
  FarMemoryMap& operator=(const FarMemoryMap&) = delete;

  Address allocate_device(std::size_t bytes);  // throws DeviceError if the range is full
  void free_device(Address address);
  Address allocate_staging(std::size_t bytes);
  void free_staging(Address address);

  // Returns the real address of bytes in one live piece of device memory. Throws InternalError for any other
  // address, except for zero bytes, whose real address is null.
  std::byte* resolve(const std::byte* address, std::size_t bytes) const;
  // Converts a result of resolve() back.
  const std::byte* address_of(const std::byte* place) const;
  bool is_staging(const std::byte* address, std::size_t bytes) const;

 private:
  using Pieces = std::map<std::size_t, std::size_t>;  // offset -> bytes

  Pieces::iterator find_room(std::size_t bytes);
  void give_room(std::size_t offset, std::size_t bytes);

  Address far_;      // faults when accessed
  std::byte* near_;  // the real range, readable where something is allocated
  Pieces free_;      // whole pages; neighbours are merged
  Pieces live_;      // sizes as asked for
  std::map<const std::byte*, std::size_t> staging_;
};

// One piece of this memory, freed with the object.
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
