#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace plexaura::cuda {

// A range of bytes that a kernel reads or writes.
struct Use {
  const std::byte* begin;
  const std::byte* end;
  bool writes;
};

// A part of a recording: a kernel, or a dividing part, which begins after all parts before it and ends before
// all parts after it.
struct Work {
  std::vector<Use> uses = {};
  double seconds = 0;  // estimated seconds
  bool divides = false;
};

constexpr std::size_t most_branches = 2;

// The branch on which a part is enqueued, and its waits for the other branch.
struct Turn {
  std::size_t branch = 0;
  std::optional<std::size_t> behind = {};  // part of the other branch that must be done before this one
  bool awaited = false;                    // true if a part of the other branch waits for this one
  bool operator==(const Turn&) const = default;
};

// Puts each kernel on the branch on which it begins earlier according to the estimates. Two kernels that use
// the same bytes keep their order if one of them writes, so the results equal those of a single branch. The
// first part must be a dividing one.
std::vector<Turn> place_on_branches(std::span<const Work> works);

}  // namespace plexaura::cuda
