#include "tests/support/blocking_backend.h"

#include <algorithm>

namespace plexaura::testing {

namespace {

Layout in_blocks(std::int64_t rank) {
  const Layout plain = Layout::row_major(rank);
  return rank < 2 ? plain : Layout(plain.order(), {{1, 16}});
}

RegionQuery in_blocks(const RegionQuery& query) {
  RegionQuery blocked = query;
  if (query.region.kind == "reorder") return blocked;
  for (std::size_t i = 0; i < blocked.given.size(); ++i)
    blocked.given[i] = in_blocks(query.type(query.region.inputs[i]).shape.rank());
  return blocked;
}

bool has_blocks(const Candidate& candidate) {
  const auto is_blocked = [](const Layout& layout) { return !layout.blocks().empty(); };
  return std::ranges::any_of(candidate.inputs, is_blocked) ||
         std::ranges::any_of(candidate.outputs, is_blocked);
}

}  // namespace

std::vector<Candidate> BlockingBackend::propose(const RegionQuery& query) const {
  std::vector<Candidate> candidates = inner().propose(in_blocks(query));
  if (std::ranges::any_of(candidates, has_blocks))
    std::erase_if(candidates, [](const Candidate& candidate) { return !has_blocks(candidate); });
  return candidates;
}

}  // namespace plexaura::testing
