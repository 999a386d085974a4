#include "backends/cpu/host_memory.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/machine_memory.h"
#include "core/loops/denormals.h"

namespace plexaura {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::string size_text(std::size_t bytes) {
  const auto number = static_cast<double>(bytes);
  return bytes < (1 << 20) ? fmt::format("{:.1f} KiB", number / (1 << 10))
                           : fmt::format("{:.1f} MiB", number / (1 << 20));
}

[[noreturn]] void throw_out_of_memory(std::size_t bytes) {
  const std::size_t available = available_memory();
  const std::string asked = fmt::format("the CPU was asked for {} of memory", size_text(bytes));
  const std::string has = size_text(available);
  if (bytes <= available)
    throw OutOfMemoryError<DeviceError>(
        fmt::format("{} and was refused, though {} are available: a limit of this process (ulimit -v) "
                    "or of the system (vm.overcommit_memory) is too low",
                    asked, has),
        "raise it, or use a smaller batch");
  throw OutOfMemoryError<DeviceError>(fmt::format("{} and has {}", asked, has),
                                      "use a smaller batch, or a machine with more memory");
}

// Maps `bytes` bytes and `spare` more. Both are whole pages.
void* map(std::size_t bytes, std::size_t spare) {
  void* mapped = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw_out_of_memory(bytes);
  return mapped;
}

// Maps memory that begins at a huge page: maps more than `bytes` bytes, and unmaps the parts outside the aligned range.
Address map_for_huge_pages(std::size_t bytes) {
  const std::size_t reserved = bytes + huge_page;
  void* mapped = map(bytes, huge_page);
  const auto first = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t start = rounded_up(first, huge_page);
  const std::size_t before = start - first;
  const std::size_t behind = reserved - before - bytes;
  if (before > 0) munmap(mapped, before);
  if (behind > 0) munmap(reinterpret_cast<void*>(start + bytes), behind);
  return reinterpret_cast<Address>(start);
}

void touch(Address address, std::size_t bytes) {
  const auto step = static_cast<std::int64_t>(page_bytes());
  const auto end = static_cast<std::int64_t>(bytes);
#ifdef _OPENMP
  const DenormalScope of_new_threads(Denormals::flushed);
#pragma omp parallel for schedule(static) if (end > (1 << 20))
#endif
  for (std::int64_t offset = 0; offset < end; offset += step) address[offset] = std::byte{0};
}

}  // namespace

HostMemory::HostMemory(std::size_t bytes)
    : bytes_(bytes), mapped_(rounded_up(std::max<std::size_t>(bytes, 1), page_bytes())) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) throw_out_of_memory(bytes);
  if (bytes >= huge_page && bytes > available_memory()) throw_out_of_memory(bytes);
  if (mapped_ < huge_page) {
    address_ = static_cast<Address>(map(mapped_, 0));
  } else {
    address_ = map_for_huge_pages(mapped_);
    madvise(address_, mapped_, MADV_HUGEPAGE);
  }
  touch(address_, mapped_);
}

HostMemory::~HostMemory() { munmap(address_, mapped_); }

}  // namespace plexaura
