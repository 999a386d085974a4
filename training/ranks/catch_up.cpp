#include "training/ranks/catch_up.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device/transfer.h"

namespace plexaura {

namespace {

static_assert(std::is_trivially_copyable_v<RunPlace>);

std::vector<RunPlace> gather_places(Collective& ranks, const RunPlace& mine) {
  std::string text(sizeof mine, '\0');
  std::memcpy(text.data(), &mine, sizeof mine);
  std::vector<RunPlace> places;
  for (const std::string& theirs : ranks.gather_all(text, "the steps of the ranks that are left"))
    std::memcpy(&places.emplace_back(), theirs.data(), sizeof mine);
  return places;
}

// Orders ranks by progress. Among ranks with equally many steps, a rank that has not yet validated the ended
// epoch counts as ahead, because all ranks must validate together. A rank that has met the others also counts
// as ahead, because it already has their sums.
bool is_behind(const RunPlace& a, const RunPlace& b) {
  return std::tuple(a.step, a.epoch_ended, !a.is_to_meet) < std::tuple(b.step, b.epoch_ended, !b.is_to_meet);
}

struct Arena {
  Address address;
  std::size_t bytes;
};

std::vector<Arena> arenas_of(const ParameterStore& store) {
  const Placement& placement = store.placement();
  std::vector<Arena> arenas{{store.values(), placement.bytes(ArenaKind::value)}};
  for (std::int64_t i = 0; i < store.states(); ++i)
    arenas.push_back({store.state(i), placement.bytes(ArenaKind::state)});
  if (store.types().scales_loss()) arenas.push_back({store.scaling(), placement.bytes(ArenaKind::scaling)});
  return arenas;
}

void send_store(Collective& ranks, int root, ParameterStore& store) {
  constexpr const char* what = "the weights and the optimizer's state of the rank that is ahead";
  const std::vector<Arena> arenas = arenas_of(store);
  std::vector<std::vector<std::byte>> copies = together(ranks, what, [&] {
    std::vector<std::vector<std::byte>> made;
    for (const Arena& arena : arenas) {
      made.emplace_back(arena.bytes);
      if (ranks.rank() == root) copy_to_host(store.backend(), made.back().data(), arena.address, arena.bytes);
    }
    return made;
  });
  for (std::vector<std::byte>& copy : copies) ranks.broadcast(copy.data(), copy.size(), root, what);
  // All ranks wait here: if one has no complete copy, all keep the weights that they have.
  ranks.gather_all("", what);
  if (ranks.rank() == root) return;
  for (std::size_t i = 0; i < arenas.size(); ++i)
    copy_to_device(store.backend(), arenas[i].address, copies[i].data(), copies[i].size());
  store.update_shadow();
  store.raise_version();
}

// Throws if no rank has trained, because then no rank has the weights.
void check_anybody_trained(Collective& ranks, const RunPlace& ahead) {
  if (ahead.step != RunPlace::nowhere) return;
  const DeviceError error(
      "all ranks that trained have died or ended, and spares take their weights from one that is left; "
      "continue from the last checkpoint with --resume");
  agree_on_error(ranks, std::make_exception_ptr(error), "the weights of the ranks that are left");
}

}  // namespace

RunPlace catch_up(Collective& ranks, const RunPlace& mine, ParameterStore& store, bool unlike) {
  const std::vector<RunPlace> places = gather_places(ranks, mine);
  const auto ahead = std::ranges::max_element(places, is_behind);
  check_anybody_trained(ranks, *ahead);
  RunPlace place = *ahead;
  place.keeps_own = std::ranges::all_of(places, &RunPlace::keeps_own);
  const bool differ =
      std::ranges::any_of(places, [&](const RunPlace& theirs) { return theirs.step != place.step; });
  if ((differ || unlike) && !place.keeps_own)
    send_store(ranks, static_cast<int>(ahead - places.begin()), store);
  return place;
}

}  // namespace plexaura
