#pragma once

#include "core/exchange/strategy.h"

namespace plexaura {

struct Run;

// The loop by which the ranks of a run train.
struct Protocol {
  // Trains to the end of the run.
  void (*loop)(Run& run);
  // True: all ranks make each step together, and each trains on its own parts of the batch. False: each rank makes
  // steps by itself, from the parts that the dealer gives it, and the ranks meet when no parts are left.
  bool meets_in_steps;
};

extern const Protocol lock_step_protocol;
extern const Protocol dealt_protocol;

inline const Protocol& protocol_of(const StrategyParts& parts) {
  return parts.dealer != nullptr ? dealt_protocol : lock_step_protocol;
}

}  // namespace plexaura
