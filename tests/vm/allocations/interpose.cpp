// Replaces malloc and mmap in this program and in all libraries that it links.

#include "tests/vm/allocations/interpose.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <link.h>
#include <span>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the C library's own names for what is replaced here
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace plexaura::testing {

namespace {

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

constexpr std::size_t depth = 48;

std::atomic<bool> counting = false;
std::atomic<std::size_t> ours = 0;
std::atomic<std::size_t> our_bytes = 0;
std::atomic<std::size_t> library = 0;
std::atomic<std::size_t> library_bytes = 0;
std::atomic<std::size_t> mapped = 0;
std::atomic<bool> have_trace = false;
void* first_trace[depth];
int first_trace_size = 0;
thread_local bool inside = false;

// Libraries that allocate for their callers. The caller of their frames is the one that counts.
constexpr std::string_view go_betweens[] = {"libstdc++", "libc.so", "libpthread", "ld-linux"};
constexpr std::string_view libraries[] = {"libdnnl", "libgomp"};

struct Ranges {
  void add(const dl_phdr_info& info, std::span<const std::string_view> names) {
    const std::string_view name = info.dlpi_name;
    if (std::ranges::none_of(
            names, [&](std::string_view part) { return name.find(part) != std::string_view::npos; }))
      return;
    for (int i = 0; i < info.dlpi_phnum && count < std::size(all); ++i)
      if (const auto& header = info.dlpi_phdr[i]; header.p_type == PT_LOAD)
        all[count++] = {info.dlpi_addr + header.p_vaddr, info.dlpi_addr + header.p_vaddr + header.p_memsz};
  }
  bool contain(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return std::any_of(all, all + count,
                       [&](const Range& range) { return place >= range.begin && place < range.end; });
  }
  Range all[64];
  std::size_t count = 0;
};

Ranges library_code;
Ranges go_between_code;

int note_object(dl_phdr_info* info, std::size_t, void*) {
  library_code.add(*info, libraries);
  go_between_code.add(*info, go_betweens);
  return 0;
}

__attribute__((noinline)) void note(std::size_t bytes) {
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  void* trace[depth];
  const int size = backtrace(trace, depth);
  int caller = 2;  // the frames before it are this function and malloc
  while (caller + 1 < size && go_between_code.contain(trace[caller])) ++caller;
  const bool by_library = caller < size && library_code.contain(trace[caller]);
  if (by_library) {
    ++library;
    library_bytes += bytes;
  } else {
    ++ours;
    our_bytes += bytes;
    if (!have_trace.exchange(true)) {
      std::copy_n(trace, size, first_trace);
      first_trace_size = size;
    }
  }
  inside = false;
}

}  // namespace

void start_counting() {
  void* warm[2];
  backtrace(warm, 2);  // loads the unwinder
  library_code.count = go_between_code.count = 0;
  dl_iterate_phdr(note_object, nullptr);
  ours = our_bytes = library = library_bytes = mapped = 0;
  have_trace = false;
  counting = true;
}

AllocationCounts stop_counting() {
  counting = false;
  return {ours, our_bytes, library, library_bytes, mapped};
}

std::string first_of_ours() {
  std::string text;
  if (!have_trace) return text;
  for (int i = 0; i < first_trace_size; ++i) {
    Dl_info info{};
    dladdr(first_trace[i], &info);
    text += fmt::format(
        "\n  {}+{:#x} {}", info.dli_fname ? info.dli_fname : "?",
        reinterpret_cast<std::uintptr_t>(first_trace[i]) - reinterpret_cast<std::uintptr_t>(info.dli_fbase),
        info.dli_sname ? info.dli_sname : "");
  }
  return text;
}

}  // namespace plexaura::testing

using plexaura::testing::note;

extern "C" {

#define EXPORTED __attribute__((visibility("default")))
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's own are reserved names

EXPORTED void* malloc(std::size_t bytes) {
  note(bytes);
  return __libc_malloc(bytes);
}

EXPORTED void* calloc(std::size_t count, std::size_t bytes) {
  note(count * bytes);
  return __libc_calloc(count, bytes);
}

EXPORTED void* realloc(void* memory, std::size_t bytes) {
  note(bytes);
  return __libc_realloc(memory, bytes);
}

EXPORTED void* memalign(std::size_t alignment, std::size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}

EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note(bytes);
  return __libc_memalign(alignment, bytes);
}

EXPORTED int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  note(bytes);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

EXPORTED void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  if (plexaura::testing::counting) ++plexaura::testing::mapped;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

}  // extern "C"
