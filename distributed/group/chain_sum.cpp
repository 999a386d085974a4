#include "distributed/group/chain_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "distributed/group/rank_wait.h"
#include "distributed/group/reduce.h"
#include "distributed/group/tags.h"

namespace plexaura {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;
constexpr int pieces_on_their_way = 4;  // over one link

Route route_through(std::vector<std::vector<int>> groups, int ranks) {
  Route route;
  route.groups = std::move(groups);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int group = 0; group < static_cast<int>(route.groups.size()); ++group) {
      const std::vector<int>& members = route.groups[static_cast<std::size_t>(group)];
      const auto found = std::find(members.begin(), members.end(), rank);
      if (found == members.end()) continue;
      if (route.runs.empty() || route.runs.back().group != group) route.runs.push_back({group, {}});
      route.runs.back().members.push_back(static_cast<int>(found - members.begin()));
    }
  }
  for (auto run = route.runs.rbegin(); run != route.runs.rend(); ++run) {
    if (std::count(route.way_back.begin(), route.way_back.end(), run->group) == 0)
      route.way_back.push_back(run->group);
  }
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  route.workers =
      static_cast<int>(std::min_element(route.groups.begin(), route.groups.end(), smaller)->size());
  return route;
}

}  // namespace

Route Route::over_nodes(const Topology& topology) {
  return route_through(topology.by_node(), topology.ranks());
}

Route Route::over_ranks(int ranks) {
  std::vector<std::vector<int>> groups;
  for (int rank = 0; rank < ranks; ++rank) groups.push_back({rank});
  return route_through(std::move(groups), ranks);
}

// One call of run().
struct ChainSum::Job {
  DType dtype;
  std::span<std::byte* const> arrays;
  std::int64_t count;
  std::int64_t piece;   // elements of a piece
  std::int64_t stride;  // from one piece of a slot to its next
  int busy = 0;

  std::byte* at(std::size_t member, std::int64_t element) const {
    return arrays[member] + element * static_cast<std::int64_t>(size_of(dtype));
  }
  std::size_t bytes(const Slot& slot) const { return static_cast<std::size_t>(slot.count) * size_of(dtype); }
};

ChainSum::ChainSum(Transport& transport, Route route, const Topology& topology, Alarm& alarm,
                   double deadline_seconds)
    : transport_(transport),
      route_(std::move(route)),
      topology_(topology),
      alarm_(alarm),
      deadline_(deadline_seconds) {
  for (int group = 0; group < static_cast<int>(route_.groups.size()); ++group) {
    const std::vector<int>& members = route_.groups[static_cast<std::size_t>(group)];
    const auto found = std::find(members.begin(), members.end(), transport_.rank());
    if (found == members.end()) continue;
    group_ = group;
    worker_ = static_cast<int>(found - members.begin());
  }
  plan_steps();
}

void ChainSum::plan_steps() {
  const auto tag_into = [](std::size_t hop) {
    return tag::chain + static_cast<int>(hop) * pieces_on_their_way;
  };
  const std::size_t runs = route_.runs.size();
  for (std::size_t i = 0; i < runs; ++i) {
    const Route::Run& run = route_.runs[i];
    if (run.group != group_) continue;
    Step step;
    step.adds = run.members;
    step.tag_in = tag_into(i);
    step.tag_out = tag_into(i + 1);
    if (i > 0) step.from = route_.runs[i - 1].group;
    if (i + 1 < runs) step.to = route_.runs[i + 1].group;
    steps_.push_back(std::move(step));
  }
  // The way back; its first station is the last run above.
  const auto here = std::find(route_.way_back.begin(), route_.way_back.end(), group_);
  const bool begins_here = here == route_.way_back.begin();
  const int next = here + 1 == route_.way_back.end() ? -1 : *(here + 1);
  if (begins_here) {
    steps_.back().to = next;
    steps_.back().tag_out = tag_into(runs);
    steps_.back().stores = true;
  } else {
    steps_.push_back({*(here - 1), next, {}, true, tag_into(runs), tag_into(runs)});
  }
  slots_.resize(steps_.size() * pieces_on_their_way);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].step = i / pieces_on_their_way;
    slots_[i].number = static_cast<int>(i % pieces_on_their_way);
  }
}

void ChainSum::run(const CallSignature& call, std::span<std::byte* const> arrays,
                   const std::function<void()>& on_progress) {
  if (worker_ >= route_.workers) return;
  try {
    carry(call, arrays, on_progress);
  } catch (...) {
    give_up();
    throw;
  }
}

// Nobody writes to a slot, or reads it, when this object is gone.
void ChainSum::give_up() {
  for (Slot& slot : slots_) {
    if (slot.state != Slot::State::idle) transport_.keep(slot.request, std::move(slot.buffer));
    slot.state = Slot::State::idle;
  }
}

void ChainSum::carry(const CallSignature& call, std::span<std::byte* const> arrays,
                     const std::function<void()>& on_progress) {
  const auto piece = static_cast<std::int64_t>(piece_bytes / size_of(call.dtype));
  const std::int64_t stride = std::int64_t{pieces_on_their_way} * route_.workers * piece;
  Job job{call.dtype, arrays, call.count, piece, stride};
  for (Slot& slot : slots_) {
    slot.buffer.resize(piece_bytes);
    ++job.busy;
    enter(slot, (std::int64_t{slot.number} * route_.workers + worker_) * piece, job);
  }
  RankWait wait(alarm_, {call, deadline_, topology_.numbers()});
  while (job.busy > 0) {
    bool moved = false;
    for (Slot& slot : slots_) moved = advance(slot, job) || moved;
    if (moved) {
      wait.progressed();
      on_progress();
    } else {
      wait.pause();
    }
  }
}

// Moves the piece on if its message has arrived or left.
bool ChainSum::advance(Slot& slot, Job& job) {
  if (slot.state == Slot::State::idle || !transport_.done(slot.request)) return false;
  if (slot.state == Slot::State::receiving) {
    work(slot, job);
  } else {
    enter(slot, slot.first + job.stride, job);
  }
  return true;
}

// Begins with the piece that starts at this element, if there is one. Pieces belong to slots by their number,
// not by who is free: the tags of messages name slots, on both ends.
void ChainSum::enter(Slot& slot, std::int64_t first, Job& job) {
  slot.state = Slot::State::idle;
  slot.first = first;
  slot.count = std::min(job.piece, job.count - first);
  if (slot.count <= 0) {
    --job.busy;
    return;
  }
  const Step& step = steps_[slot.step];
  if (step.from < 0) return work(slot, job);
  slot.state = Slot::State::receiving;
  slot.request = transport_.receive(std::span(slot.buffer).first(job.bytes(slot)), rank_of(step.from),
                                    step.tag_in + slot.number);
}

void ChainSum::work(Slot& slot, Job& job) {
  const Step& step = steps_[slot.step];
  std::span<const int> adds = step.adds;
  if (step.from < 0) {
    std::memcpy(slot.buffer.data(), job.at(static_cast<std::size_t>(adds.front()), slot.first),
                job.bytes(slot));
    adds = adds.subspan(1);
  }
  for (const int member : adds)
    add(job.dtype, slot.buffer.data(), job.at(static_cast<std::size_t>(member), slot.first), slot.count);
  if (step.stores) {
    for (std::size_t member = 0; member < job.arrays.size(); ++member) {
      std::memcpy(job.at(member, slot.first), slot.buffer.data(), job.bytes(slot));
    }
  }
  if (step.to < 0) return enter(slot, slot.first + job.stride, job);
  slot.state = Slot::State::sending;
  slot.request = transport_.send(std::span(slot.buffer).first(job.bytes(slot)), rank_of(step.to),
                                 step.tag_out + slot.number);
}

}  // namespace plexaura
