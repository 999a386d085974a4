#include "training/optimizers/averaged_weights.h"

#include <algorithm>
#include <cstddef>

#include "core/device/transfer.h"

namespace plexaura {

namespace {

constexpr std::size_t most_copied = std::size_t{1} << 20;

// Returns the address of the averages, which are the last state.
Address averages_in(const ParameterStore& store) { return store.state(store.states() - 1); }

// Calls `visit` with the begin and the length of each piece of the arena of averages, in bytes, until it returns false.
void visit_pieces(const ParameterStore& store, const std::function<bool(std::size_t, std::size_t)>& visit) {
  const std::size_t bytes = store.placement().bytes(ArenaKind::state);
  for (std::size_t begin = 0; begin < bytes; begin += most_copied)
    if (!visit(begin, std::min(most_copied, bytes - begin))) return;
}

}  // namespace

// True if averages exist. Averages are 0 before the first update, which sets them to the new weights. The weights are not
// all 0.
bool has_averages(const ParameterStore& store, const OptimizerSpec& optimizer) {
  if (!optimizer.ema) return false;
  StagedCopy copy(store.backend(), most_copied);
  bool found = false;
  visit_pieces(store, [&](std::size_t begin, std::size_t bytes) {
    copy.to_host(averages_in(store) + begin, bytes);
    found = std::any_of(copy.host(), copy.host() + bytes, [](std::byte one) { return one != std::byte{0}; });
    return !found;
  });
  return found;
}

// Exchanges values and averages. Trained parameters come first in the arena of values, at the same offsets as
// in the arenas of states.
void exchange_averages(ParameterStore& store, const OptimizerSpec& optimizer) {
  if (!has_averages(store, optimizer)) return;
  StagedCopy values(store.backend(), most_copied);
  StagedCopy averages(store.backend(), most_copied);
  visit_pieces(store, [&](std::size_t begin, std::size_t bytes) {
    values.to_host(store.values() + begin, bytes);
    averages.to_host(averages_in(store) + begin, bytes);
    values.to_device(averages_in(store) + begin, bytes);
    averages.to_device(store.values() + begin, bytes);
    return true;
  });
  store.update_shadow();
  store.raise_version();
}

void with_averages(ParameterStore& store, const OptimizerSpec& optimizer, const std::function<void()>& use) {
  exchange_averages(store, optimizer);
  try {
    use();
  } catch (...) {
    exchange_averages(store, optimizer);
    throw;
  }
  exchange_averages(store, optimizer);
}

}  // namespace plexaura
