#include "core/compile/memory_plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace plexaura {

namespace {

// The work of Packing grows with the square of the number of lifetimes. For this many it takes some tens of
// milliseconds.
constexpr std::size_t most_lifetimes_packed = 8192;

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Returns the bytes in use at each instruction.
std::vector<std::size_t> alive_at(std::span<const Lifetime> lifetimes) {
  std::size_t end = 0;
  for (const Lifetime& lifetime : lifetimes) end = std::max(end, lifetime.last + 1);
  // First the change of the bytes at each instruction, then the sums of these changes.
  std::vector<std::size_t> alive(end + 1, 0);
  for (const Lifetime& lifetime : lifetimes) {
    alive[lifetime.first] += whole_granules(lifetime.bytes);
    alive[lifetime.last + 1] -= whole_granules(lifetime.bytes);
  }
  std::partial_sum(alive.begin(), alive.end(), alive.begin());
  alive.pop_back();
  return alive;
}

std::size_t most_of(const std::vector<std::size_t>& alive) {
  return alive.empty() ? 0 : *std::ranges::max_element(alive);
}

// Extends each lifetime by up to `instructions` instructions, but only so far that the largest number of
// bytes in use does not grow.
std::vector<Lifetime> stretched(std::span<const Lifetime> lifetimes, std::size_t instructions) {
  std::vector<Lifetime> longer(lifetimes.begin(), lifetimes.end());
  std::vector<std::size_t> alive = alive_at(lifetimes);
  const std::size_t most = most_of(alive);
  for (std::size_t more = 1; more <= instructions; ++more)
    for (std::size_t index = 0; index < longer.size(); ++index) {
      const std::size_t at = lifetimes[index].last + more;
      const std::size_t bytes = whole_granules(longer[index].bytes);
      if (longer[index].last + 1 != at || at >= alive.size() || alive[at] + bytes > most) continue;
      alive[at] += bytes;
      longer[index].last = at;
    }
  return longer;
}

// Places lifetimes one by one in the given order. Each goes to the smallest gap that is large enough between
// those that overlap with it in time.
class Packing {
 public:
  explicit Packing(std::span<const Lifetime> lifetimes)
      : lifetimes_(lifetimes), plan_{std::vector<std::size_t>(lifetimes.size()), 0, 0} {}

  void place(std::size_t index) {
    const std::size_t bytes = whole_granules(lifetimes_[index].bytes);
    const std::size_t none = static_cast<std::size_t>(-1);
    std::size_t best = none;
    std::size_t least_slack = none;
    std::size_t gap_start = 0;
    for (const std::size_t other : placed_) {  // placed lifetimes, in the order of offsets
      if (!overlap(lifetimes_[index], lifetimes_[other])) continue;
      const std::size_t start = plan_.offsets[other];
      if (start >= gap_start + bytes && start - gap_start - bytes < least_slack) {
        least_slack = start - gap_start - bytes;
        best = gap_start;
      }
      gap_start = std::max(gap_start, start + whole_granules(lifetimes_[other].bytes));
    }
    plan_.offsets[index] = best == none ? gap_start : best;
    plan_.peak = std::max(plan_.peak, plan_.offsets[index] + bytes);
    const auto behind = std::ranges::upper_bound(placed_, plan_.offsets[index], {},
                                                 [&](std::size_t other) { return plan_.offsets[other]; });
    placed_.insert(behind, index);
  }

  MemoryPlan plan() && { return std::move(plan_); }

 private:
  std::span<const Lifetime> lifetimes_;
  MemoryPlan plan_;
  std::vector<std::size_t> placed_;
};

// Places lifetimes in the order in which they begin. Each goes to the smallest gap that is large enough
// between those in use at that time. The plan is the one that Packing would make in this order, but Sweep
// does not visit lifetimes that have ended.
class Sweep {
 public:
  explicit Sweep(std::span<const Lifetime> lifetimes)
      : lifetimes_(lifetimes), plan_{std::vector<std::size_t>(lifetimes.size(), 0), 0, 0} {}

  MemoryPlan plan() && {
    const std::vector<std::size_t> births = sorted(&Lifetime::first);
    const std::vector<std::size_t> deaths = sorted(&Lifetime::last);
    auto dying = deaths.begin();
    for (const std::size_t index : births) {
      if (lifetimes_[index].bytes == 0) continue;
      for (; lifetimes_[*dying].last < lifetimes_[index].first; ++dying)
        if (lifetimes_[*dying].bytes > 0) release(*dying);
      plan_.offsets[index] = take(bytes_of(index));
    }
    return std::move(plan_);
  }

 private:
  std::size_t bytes_of(std::size_t index) const { return whole_granules(lifetimes_[index].bytes); }

  std::vector<std::size_t> sorted(std::size_t Lifetime::*key) const {
    std::vector<std::size_t> order(lifetimes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t index) { return lifetimes_[index].*key; });
    return order;
  }

  std::size_t take(std::size_t bytes) {
    const auto tightest = by_bytes_.lower_bound({bytes, 0});
    if (tightest == by_bytes_.end()) {
      top_ += bytes;
      plan_.peak = std::max(plan_.peak, top_);
      return top_ - bytes;
    }
    const auto [gap, start] = *tightest;
    remove_gap(gaps_.find(start));
    if (gap > bytes) add_gap(start + bytes, gap - bytes);
    return start;
  }

  // Frees the memory of a lifetime, and joins the gap with gaps on both sides.
  void release(std::size_t index) {
    std::size_t start = plan_.offsets[index];
    std::size_t bytes = bytes_of(index);
    auto next = gaps_.upper_bound(start);
    if (next != gaps_.begin())
      if (const auto previous = std::prev(next); previous->first + previous->second == start) {
        start = previous->first;
        bytes += previous->second;
        remove_gap(previous);
      }
    if (next != gaps_.end() && next->first == start + bytes) {
      bytes += next->second;
      remove_gap(next);
    }
    if (start + bytes == top_)
      top_ = start;
    else
      add_gap(start, bytes);
  }

  void add_gap(std::size_t start, std::size_t bytes) {
    gaps_.emplace(start, bytes);
    by_bytes_.emplace(bytes, start);
  }

  void remove_gap(std::map<std::size_t, std::size_t>::iterator gap) {
    by_bytes_.erase({gap->second, gap->first});
    gaps_.erase(gap);
  }

  std::span<const Lifetime> lifetimes_;
  MemoryPlan plan_;
  std::map<std::size_t, std::size_t> gaps_;  // maps the start of a gap to its bytes; gaps lie below top_
  std::set<std::pair<std::size_t, std::size_t>> by_bytes_;  // (bytes, start) of the same gaps
  std::size_t top_ = 0;                                     // no memory in use is at or above it
};

std::int64_t duration(const Lifetime& lifetime) {
  return static_cast<std::int64_t>(lifetime.last - lifetime.first + 1);
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  using Key = double (*)(const Lifetime&);
  constexpr std::array<Key, 3> keys{
      [](const Lifetime& l) { return -static_cast<double>(l.bytes); },
      [](const Lifetime& l) { return -static_cast<double>(l.bytes) * static_cast<double>(duration(l)); },
      [](const Lifetime& l) { return -static_cast<double>(duration(l)); },
  };
  MemoryPlan best;
  best.peak = static_cast<std::size_t>(-1);
  const auto keep_less = [&](MemoryPlan plan) {
    if (plan.peak < best.peak) best = std::move(plan);
  };
  for (const Key key : keys) {
    if (lifetimes.size() > most_lifetimes_packed) break;
    std::vector<std::size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t index) { return key(lifetimes[index]); });
    Packing packing(lifetimes);
    for (const std::size_t index : order) packing.place(index);
    keep_less(std::move(packing).plan());
  }
  keep_less(Sweep(lifetimes).plan());
  best.lower_bound = most_of(alive_at(lifetimes));
  return best;
}

MemoryPlan plan_memory_apart(std::span<const Lifetime> lifetimes, std::size_t instructions) {
  MemoryPlan close = plan_memory(lifetimes);
  if (instructions == 0) return close;
  MemoryPlan apart = plan_memory(stretched(lifetimes, instructions));
  constexpr std::size_t largest_share = 100;  // the arena may grow by its peak divided by this number
  return apart.peak <= close.peak + close.peak / largest_share ? apart : close;
}

}  // namespace plexaura
