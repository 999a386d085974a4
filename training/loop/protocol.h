#pragma once

#include "core/exchange/strategy.h"

namespace plexaura {

struct Run;

// How the ranks of a run make its steps.
struct Protocol {
  // Trains to the end of the run.
  void (*loop)(Run& run);
  // All ranks make each step together, each from its own parts of the batch. Else each rank makes its own steps, from any parts, and
  // the ranks meet when nothing is left.
  bool meets_in_steps;
};

extern const Protocol lock_step_protocol;
extern const Protocol dealt_protocol;

inline const Protocol& protocol_of(const StrategyParts& parts) {
  return parts.dealer != nullptr ? dealt_protocol : lock_step_protocol;
}

}  // namespace plexaura
