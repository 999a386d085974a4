#pragma once

#include <cstdint>

#include "core/exchange/collective.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// Where a rank stands in its run.
struct RunPlace {
  static constexpr std::int64_t nowhere = -1;
  std::int64_t step = 0;        // updates done; nowhere: a spare, which has neither weights nor state yet
  std::int64_t first_step = 0;  // that was done before this run
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  double epoch_loss = 0;
  double epoch_samples = 0;
  bool epoch_ended = false;  // and is to be validated
  bool is_to_meet = false;   // its steps were dealt out, and were not summed up yet
  bool saved = false;
  bool keeps_own = false;  // weights and state, for it trains for itself
};

// When ranks die, those that are left may stand behind different steps. They all go on from the lowest of those
// that are ahead: the others take its weights, buffers and optimizer's state. With `unlike` weights may differ behind
// one step, too, and are taken always. Where all keep their own, nobody takes any: a rank that is behind leaves its part
// of that step out. Returns its place, in which keeps_own is that of all. DeviceError on all ranks where all of them are
// nowhere. Collective. The store is placed alike on all ranks; it changes only where all of it has come.
RunPlace catch_up(Collective& ranks, const RunPlace& mine, ParameterStore& store, bool unlike = false);

}  // namespace plexaura
