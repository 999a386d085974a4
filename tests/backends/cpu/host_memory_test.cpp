#include "backends/cpu/host_memory.h"

#include <doctest/doctest.h>
#include <string>
#include <sys/resource.h>

#include "tests/support/own_process.h"
#include "tests/support/sanitized.h"

namespace plexaura::testing::host_memory_test {

namespace {

// Returns how a process ends that may not get more memory than it has.
std::string what_ends_without_memory(std::size_t bytes) {
  return what_ends([bytes] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_AS, &none);
    const HostMemory memory(bytes);
  });
}

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

}  // namespace plexaura::testing::host_memory_test
