#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "training/optimizers/plateau.h"

namespace plexaura {

// By which metric of the validation epochs are compared.
struct EpochGoal {
  using Mode = Plateau::Mode;

  std::string metric = "loss";  // "loss" is the validation loss, otherwise a metric of the model
  Mode mode = Mode::min;        // max: the metric is to rise, as an accuracy
  // The run ends after this many epochs in a row that were not better than the best one; empty: it makes all epochs.
  std::optional<std::int64_t> patience = {};
};

// The best epoch so far. It is part of a checkpoint, and equal on all ranks. Trivially copyable.
struct BestEpoch {
  std::int64_t epoch = -1;  // from 0; -1: none was compared yet
  std::int64_t step = 0;    // updates at its end
  double value = 0;         // of the metric
  std::int64_t worse = 0;   // epochs since then, none of which was better

  bool is_known() const { return epoch >= 0; }
  bool operator==(const BestEpoch&) const = default;
};

// Returns the best epoch after one more epoch, at whose end the metric has this value. NaN is worse than any number. An
// epoch that was compared before, because a rank was lost before the run went on, changes nothing.
BestEpoch compared(const EpochGoal& goal, BestEpoch best, std::int64_t epoch, std::int64_t step,
                   double value);

// True if the run ends, because the goal's patience is used up.
bool is_exhausted(const EpochGoal& goal, const BestEpoch& best);

// Returns the text by which a checkpoint names what its run observes. A run that is resumed with another text begins to
// observe then.
std::string name_of(const std::string& metric, Plateau::Mode mode);

}  // namespace plexaura
