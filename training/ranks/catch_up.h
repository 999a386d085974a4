#pragma once

#include <cstdint>

#include "core/exchange/collective.h"
#include "core/params/parameter_store.h"
#include "training/optimizers/plateau.h"
#include "training/ranks/best_epoch.h"

namespace plexaura {

// The progress of a rank in its run.
struct RunPlace {
  static constexpr std::int64_t nowhere = -1;
  std::int64_t step = 0;  // number of updates; `nowhere`: a spare, which has neither weights nor state yet
  std::int64_t first_step = 0;  // number of updates before this run
  std::int64_t epoch = 0;       // epoch of the next step, from 0
  std::int64_t step_in_epoch = 0;
  double epoch_loss = 0;  // sum of the losses of the epoch so far
  // Divisor of epoch_loss: the number of samples, or the sum of LossOutputs::weight.
  double epoch_samples = 0;
  PlateauState plateau = {};  // state of the learning rate's Plateau
  BestEpoch best = {};
  bool epoch_ended = false;  // true: the epoch has ended and is not validated yet
  bool is_to_meet = false;   // true: a dealer gave this rank its steps, and they are not summed yet
  bool saved = false;        // true: a checkpoint of this place exists
  bool keeps_own = false;    // true: each rank keeps its own weights and state, because it trains by itself
};

// Collective. Makes the ranks that are left after deaths continue from the same step. They may have made different
// numbers of steps. Ranks with fewer steps get the weights, buffers and optimizer's state of the lowest rank among
// those with the most steps; of these, ranks with epoch_ended and then ranks without is_to_meet come first. With
// `unlike`, weights may differ even after the same step, so all ranks get them. If all ranks keep their own weights,
// no weights are sent, and a rank with fewer steps leaves out its part of the step that it lacks. Returns the common
// place; its keeps_own is true if it is true on all ranks. Throws DeviceError on all ranks if all of them are
// `nowhere`. The store must have the same placement on all ranks. It changes only after all data has arrived.
RunPlace catch_up(Collective& ranks, const RunPlace& mine, ParameterStore& store, bool unlike = false);

}  // namespace plexaura
