#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace plexaura::cuda {

// Bytes that a kernel reads or writes.
struct Use {
  const std::byte* begin;
  const std::byte* end;
  bool writes;
};

// A part of a recording: a kernel, or what comes behind all parts before it and before all behind it.
struct Work {
  std::vector<Use> uses = {};
  double seconds = 0;  // estimated
  bool divides = false;
};

constexpr std::size_t most_branches = 2;

// Where a part is enqueued.
struct Turn {
  std::size_t branch = 0;
  std::optional<std::size_t> behind = {};  // the part of the other branch that comes first
  bool awaited = false;                    // by a part of the other branch
  bool operator==(const Turn&) const = default;
};

// Puts a kernel on the branch where it begins earlier by the estimates. Two that use the same bytes, one of them to write,
// keep their order, so that results are those of one branch. The first part divides.
std::vector<Turn> place_on_branches(std::span<const Work> works);

}  // namespace plexaura::cuda
