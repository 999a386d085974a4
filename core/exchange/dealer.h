#pragma once

#include <cstdint>
#include <optional>

#include "core/base/export.h"

namespace plexaura {

// The steps of an epoch whose parts are dealt out: from `first` up to, but without, `end`. Each step's batch
// is divided into as many parts as there are ranks that train. Parts without samples are not dealt.
struct DealtSteps {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t parts = 1;          // number of parts of a step
  std::int64_t parts_of_last = 1;  // number of parts of the last step, whose batch may be smaller
  std::int64_t behind = 0;         // number of the run's steps before these; it identifies the deal
};

// The result of Dealer::draw().
struct Draw {
  // The number of the part's step in the epoch. Without a part: of the step after the last one that was
  // dealt.
  std::int64_t step_in_epoch = 0;
  std::optional<std::int64_t> part = {};  // index of the part in its step; empty: no part is left
};

// Deals out the data to ranks that do not wait for each other. A rank draws the next part of the epoch as
// soon as it is free, so that slow ranks draw fewer parts. Each part is drawn once. A part is drawn again
// only if its rank dies before it has trained on it. The training thread calls these functions.
class PLEXAURA_API Dealer {
 public:
  virtual ~Dealer();

  // Returns the next part of these steps, which are the same on all ranks. If no part is left, returns the
  // step at which the deal has ended, which is the same on all ranks. Then all ranks meet: see
  // StrategyParts::dealer.
  virtual Draw draw(const DealtSteps& steps) = 0;

  // Called where the ranks meet, after WeightExchange::show_weights(). Returns false if a rank has died and
  // its parts must be drawn before the ranks meet again.
  virtual bool is_over() const { return true; }

  // Ends the deal early, because this rank was asked to stop or has failed. The current step becomes the last
  // one of the deal, and its remaining parts are still dealt.
  virtual void stop() = 0;
};

}  // namespace plexaura
