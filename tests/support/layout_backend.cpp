#include "tests/support/layout_backend.h"

#include <algorithm>

namespace plexaura::testing {

namespace {

RegionQuery in_layouts(const RegionQuery& query, LayoutOfRank layout_of) {
  RegionQuery moved = query;
  if (query.region.kind == "reorder") return moved;
  for (std::size_t i = 0; i < moved.given.size(); ++i)
    moved.given[i] = layout_of(query.type(query.region.inputs[i]).shape.rank());
  return moved;
}

// Returns true if an operand of the kernel is not row-major.
bool is_moved(const Candidate& candidate) {
  const auto moved = [](const Layout& layout) { return !layout.is_row_major(); };
  return std::ranges::any_of(candidate.inputs, moved) || std::ranges::any_of(candidate.outputs, moved);
}

}  // namespace

Layout in_blocks(std::int64_t rank) {
  const Layout plain = Layout::row_major(rank);
  return rank < 2 ? plain : Layout(plain.order(), {{1, 16}});
}

Layout in_channels_last(std::int64_t rank) {
  return rank == 4 ? Layout({0, 2, 3, 1}) : Layout::row_major(rank);
}

std::vector<Candidate> LayoutBackend::propose(const RegionQuery& query) const {
  std::vector<Candidate> candidates = inner().propose(in_layouts(query, layout_of_));
  if (std::ranges::none_of(candidates, is_moved)) return candidates;
  was_used_ = true;
  std::erase_if(candidates, [](const Candidate& candidate) { return !is_moved(candidate); });
  return candidates;
}

}  // namespace plexaura::testing
