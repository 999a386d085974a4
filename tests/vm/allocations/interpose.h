#pragma once

#include <cstddef>
#include <string>

namespace plexaura::testing {

// What was asked of malloc and its kind, and of mmap, on any thread, between start and stop. An allocation is
// the library's where oneDNN or the OpenMP runtime made it, else ours.
struct AllocationCounts {
  std::size_t ours = 0;
  std::size_t our_bytes = 0;
  std::size_t library = 0;
  std::size_t library_bytes = 0;
  std::size_t mapped = 0;  // calls of mmap
  bool operator==(const AllocationCounts&) const = default;
};

void start_counting();
AllocationCounts stop_counting();
// Where the first of ours was made: addresses for addr2line. Empty where there was none.
std::string first_of_ours();

}  // namespace plexaura::testing
