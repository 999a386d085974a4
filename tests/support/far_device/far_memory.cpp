#include "tests/support/far_device/far_memory.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <new>
#include <sys/mman.h>

#include "core/base/error.h"

namespace plexaura::far_device {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t range_bytes = std::size_t{8} << 30;
constexpr std::align_val_t staging_alignment{64};
constexpr int ones = 0xff;  // a float of these bytes is NaN

std::byte* reserve() {
  void* range = mmap(nullptr, range_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw DeviceError("the far device found no address space for its memory");
  return static_cast<std::byte*>(range);
}

std::size_t pages_of(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page; }

std::size_t with_guard(std::size_t bytes) { return pages_of(bytes) + page; }

}  // namespace

FarMemoryMap::FarMemoryMap() : far_(reserve()), near_(reserve()), free_{{0, range_bytes}} {}

FarMemoryMap::~FarMemoryMap() {
  munmap(far_, range_bytes);
  munmap(near_, range_bytes);
}

FarMemoryMap::Pieces::iterator FarMemoryMap::find_room(std::size_t bytes) {
  return std::ranges::find_if(free_, [&](const auto& room) { return room.second >= bytes; });
}

Address FarMemoryMap::allocate_device(std::size_t bytes) {
  const auto room = bytes < range_bytes ? find_room(with_guard(bytes)) : free_.end();
  if (room == free_.end() || mprotect(near_ + room->first, pages_of(bytes), PROT_READ | PROT_WRITE) != 0)
    throw DeviceError(
        fmt::format("the far device was asked for {} bytes and has {} bytes in all", bytes, range_bytes));
  const auto [offset, available] = *room;
  free_.erase(room);
  if (available > with_guard(bytes)) free_.emplace(offset + with_guard(bytes), available - with_guard(bytes));
  live_.emplace(offset, bytes);
  std::memset(near_ + offset, ones, pages_of(bytes));
  return far_ + offset;
}

// A late reader finds NaN there until the memory is used again.
void FarMemoryMap::free_device(Address address) {
  const auto piece = live_.find(static_cast<std::size_t>(address - far_));
  std::memset(near_ + piece->first, ones, pages_of(piece->second));
  give_room(piece->first, with_guard(piece->second));
  live_.erase(piece);
}

void FarMemoryMap::give_room(std::size_t offset, std::size_t bytes) {
  auto room = free_.emplace(offset, bytes).first;
  if (const auto next = std::next(room); next != free_.end() && offset + bytes == next->first) {
    room->second += next->second;
    free_.erase(next);
  }
  if (room == free_.begin()) return;
  const auto before = std::prev(room);
  if (before->first + before->second != offset) return;
  before->second += room->second;
  free_.erase(room);
}

Address FarMemoryMap::allocate_staging(std::size_t bytes) {
  const std::size_t whole = std::max<std::size_t>(bytes, 1);
  auto* address = static_cast<std::byte*>(::operator new(whole, staging_alignment));
  std::memset(address, ones, whole);
  staging_.emplace(address, whole);
  return address;
}

void FarMemoryMap::free_staging(Address address) {
  const auto piece = staging_.find(address);
  std::memset(address, ones, piece->second);
  staging_.erase(piece);
  ::operator delete(address, staging_alignment);
}

std::byte* FarMemoryMap::resolve(const std::byte* address, std::size_t bytes) const {
  if (bytes == 0) return nullptr;
  if (address >= far_ && address < far_ + range_bytes) {
    const auto offset = static_cast<std::size_t>(address - far_);
    const auto behind = live_.upper_bound(offset);
    if (behind != live_.begin()) {
      const auto& [start, size] = *std::prev(behind);
      if (offset + bytes <= start + size) return near_ + offset;
    }
  }
  throw InternalError(fmt::format("{} bytes at {} are no live memory of the far device", bytes,
                                  static_cast<const void*>(address)));
}

const std::byte* FarMemoryMap::address_of(const std::byte* place) const { return far_ + (place - near_); }

bool FarMemoryMap::is_staging(const std::byte* address, std::size_t bytes) const {
  const auto behind = staging_.upper_bound(address);
  if (behind == staging_.begin()) return false;
  const auto& [start, size] = *std::prev(behind);
  return address + bytes <= start + size;
}

FarMemory::FarMemory(std::shared_ptr<FarMemoryMap> map, std::size_t bytes, MemoryUse use)
    : map_(std::move(map)),
      bytes_(bytes),
      use_(use),
      address_(use == MemoryUse::device ? map_->allocate_device(bytes) : map_->allocate_staging(bytes)) {}

FarMemory::~FarMemory() {
  if (use_ == MemoryUse::device)
    map_->free_device(address_);
  else
    map_->free_staging(address_);
}

}  // namespace plexaura::far_device
