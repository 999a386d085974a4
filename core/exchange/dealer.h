#pragma once

#include <cstdint>
#include <optional>

#include "core/base/export.h"

namespace plexaura {

// The steps of an epoch whose parts are dealt out: from `first` up to `end`. The batch of a step is cut into as many parts
// as ranks train, of which only those are dealt that have samples.
struct DealtSteps {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t parts = 1;          // of a step
  std::int64_t parts_of_last = 1;  // of the last one, whose batch may be smaller
  std::int64_t behind = 0;         // steps of the run before these: no two deals begin behind as many
};

// What a rank has drawn.
struct Draw {
  // Of the part; where there is none, the step behind the last that was dealt.
  std::int64_t step_in_epoch = 0;
  std::optional<std::int64_t> part = {};  // its number; none: nothing more is dealt
};

// Deals out the data of ranks that do not wait for each other: who is free draws the next part of the epoch, so that a
// slow rank draws fewer. No part is drawn twice, but those that a rank which has died leaves behind. Called by the thread
// that trains.
class PLEXAURA_API Dealer {
 public:
  virtual ~Dealer();

  // The next part of these steps, which are the same on all ranks. When nothing is left this rank hears where the deal has
  // ended, and so do all others. Then all ranks meet: see StrategyParts::dealer.
  virtual Draw draw(const DealtSteps& steps) = 0;

  // Asked where they meet, after WeightExchange::show_weights(). False: a rank has died, and what it has left behind is to be
  // drawn before they meet again.
  virtual bool is_over() const { return true; }

  // Ends the deal before its time, for this rank was asked to stop or has failed: the step that is being dealt is the
  // last one, and all ranks are dealt the rest of it.
  virtual void stop() = 0;
};

}  // namespace plexaura
