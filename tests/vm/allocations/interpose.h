#pragma once

#include <cstddef>
#include <string>

namespace plexaura::testing {

// Counts calls of malloc and similar functions, and of mmap, in all threads between start and stop. An
// allocation counts as the library's if oneDNN or the OpenMP runtime called, otherwise as ours.
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
// Returns where the first allocation of ours was made, as addresses for addr2line; empty if there was none.
std::string first_of_ours();

}  // namespace plexaura::testing
