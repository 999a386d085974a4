#include "backends/cuda/engine/branches.h"

#include <algorithm>
#include <array>

namespace plexaura::cuda {

namespace {

bool collide(const Use& a, const Use& b) {
  return (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

bool keep_order(const Work& first, const Work& second) {
  if (first.divides || second.divides) return true;
  return std::ranges::any_of(first.uses, [&](const Use& a) {
    return std::ranges::any_of(second.uses, [&](const Use& b) { return collide(a, b); });
  });
}

class Placing {
 public:
  explicit Placing(std::span<const Work> works) : works_(works), turns_(works.size()), ends_(works.size()) {}

  std::vector<Turn> run() && {
    for (std::size_t part = 0; part < works_.size(); ++part) place(part);
    return std::move(turns_);
  }

 private:
  // For each branch, the number of the last part that must be done before the present one begins. The search
  // for it ends at the last dividing part, which itself waits for all parts before it.
  using Needs = std::array<std::optional<std::size_t>, most_branches>;

  Needs needs_of(std::size_t part) const {
    Needs needs;
    for (std::size_t before = part; before-- > 0 && !(needs[0] && needs[1]);) {
      auto& need = needs[turns_[before].branch];
      if (!need && keep_order(works_[before], works_[part])) need = before;
      if (works_[before].divides) break;
    }
    return needs;
  }

  double begin_on(std::size_t branch, const Needs& needs) const {
    double begin = branch_ends_[branch];
    for (const auto& need : needs)
      if (need) begin = std::max(begin, ends_[*need]);
    return begin;
  }

  // Returns the branch on which the part can begin earlier; the first one for a dividing part. If a part can begin
  // on both at the same time, returns the branch of the last part that it needs.
  std::size_t branch_of(const Work& work, const Needs& needs) const {
    const double first = begin_on(0, needs);
    const double second = begin_on(1, needs);
    return !work.divides && (second < first || (second == first && needs[1] > needs[0])) ? 1 : 0;
  }

  void place(std::size_t part) {
    const Needs needs = needs_of(part);
    Turn& turn = turns_[part];
    turn.branch = branch_of(works_[part], needs);
    const auto& need = needs[1 - turn.branch];
    auto& awaited = awaited_[turn.branch];
    if (need > awaited) {
      turn.behind = awaited = need;
      turns_[*need].awaited = true;
    }
    ends_[part] = branch_ends_[turn.branch] = begin_on(turn.branch, needs) + works_[part].seconds;
  }

  std::span<const Work> works_;
  std::vector<Turn> turns_;
  std::vector<double> ends_;  // time at which each part ends, in seconds
  // Time at which the last part of each branch ends, in seconds.
  std::array<double, most_branches> branch_ends_{};
  // For each branch: the last part of the other branch for which it has waited.
  std::array<std::optional<std::size_t>, most_branches> awaited_;
};

}  // namespace

std::vector<Turn> place_on_branches(std::span<const Work> works) { return Placing(works).run(); }

}  // namespace plexaura::cuda
