#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "training/optimizers/plateau.h"

namespace plexaura {

// The comparison of epochs: by which metric of validation, and in which direction.
struct EpochGoal {
  using Mode = Plateau::Mode;

  // Name of the metric: "loss" is the validation loss, otherwise a metric of the model.
  std::string metric = "loss";
  Mode mode = Mode::min;  // max: larger values are better, as for an accuracy
  // The number of epochs in a row without improvement after which the run ends. Empty: it makes all epochs.
  std::optional<std::int64_t> patience = {};
};

// The best epoch so far. It is part of a checkpoint, and equal on all ranks. Trivially copyable.
struct BestEpoch {
  std::int64_t epoch = -1;  // number of the epoch, from 0; -1: no epoch was compared yet
  std::int64_t step = 0;    // number of updates at the end of the epoch
  double value = 0;         // value of the metric
  std::int64_t worse = 0;   // number of epochs since the best one, none of which was better

  bool is_known() const { return epoch >= 0; }
  bool operator==(const BestEpoch&) const = default;
};

// Returns the best epoch after one more epoch, at whose end the metric has this value. NaN is worse than any
// number. An epoch may be compared twice, if a rank was lost after the first time; the second time changes
// nothing.
BestEpoch compared(const EpochGoal& goal, BestEpoch best, std::int64_t epoch, std::int64_t step,
                   double value);

// True if the run ends, because the goal's patience is used up.
bool is_exhausted(const EpochGoal& goal, const BestEpoch& best);

// Returns the text by which a checkpoint names what its run observes. A run that is resumed with another text
// begins its observations anew.
std::string name_of(const std::string& metric, Plateau::Mode mode);

}  // namespace plexaura
