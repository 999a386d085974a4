#include "backends/cpu/host_memory.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/own_process.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::host_memory_test {

namespace {

// Returns the bytes of this process's address space.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Returns how a process ends that allocates memory if its address space may grow by this many bytes.
std::string what_ends_within(std::size_t growth, std::size_t bytes) {
  return what_ends([=] {
    const rlim_t most = growth == 0 ? 0 : address_space() + growth;
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    const HostMemory memory(bytes);
  });
}

std::string what_ends_without_memory(std::size_t bytes) { return what_ends_within(0, bytes); }

}  // namespace

TEST_CASE("host memory: what was refused is told in a unit that does not round it to nothing") {
  if (address_sanitized) {
    MESSAGE("skipped: the address sanitizer needs memory of its own to note an error");
    return;
  }
  CHECK(
      what_ends_without_memory(3400).starts_with("the CPU was asked for 4.0 KiB of memory and was refused"));
  CHECK(what_ends_without_memory(5 << 20).starts_with(
      "the CPU was asked for 5.0 MiB of memory and was refused"));
}

TEST_CASE(
    "host memory: a small memory takes its own pages of the address space, a large one begins at a huge "
    "page") {
  if (!address_sanitized) CHECK(what_ends_within(64 << 10, 3400) == "");
  const auto place = [](const HostMemory& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.address()) % (2 << 20);
  };
  for (int i = 0; i < 3; ++i) {
    const HostMemory small(3400);
    const HostMemory large(5 << 20);
    CHECK(place(large) == 0);
    CHECK(place(small) % 64 == 0);
  }
}

}  // namespace plexaura::testing::host_memory_test
