#pragma once

#include <cstdint>
#include <optional>

#include "core/export.h"

namespace plexaura {

// What a rank has drawn. The batch of each step is cut into as many parts as ranks train.
struct Draw {
  std::int64_t step_in_epoch =
      0;  // of the part; where there is none, the step behind the last that was dealt
  std::optional<std::int64_t> part = {};  // its number; none: nothing more is dealt
};

// Deals out the data of ranks that do not wait for each other: who is free draws the next part of the epoch, so that a
// slow rank draws fewer. No part is drawn twice. Called by the thread that trains.
class PLEXAURA_API Dealer {
 public:
  virtual ~Dealer();

  // The next part of the steps from `first` up to `end`, which are the same on all ranks. When nothing is left this
  // rank hears where the deal has ended, and so do all others. Then all ranks meet: see Strategy::dealer().
  virtual Draw draw(std::int64_t first, std::int64_t end) = 0;

  // Ends the deal before its time, for this rank was asked to stop or has failed: the step that is being dealt is the
  // last one, and all ranks are dealt the rest of it.
  virtual void stop() = 0;
};

}  // namespace plexaura
