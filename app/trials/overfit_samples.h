#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/exchange/collective.h"
#include "models/config/config.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// Returns the settings, such as "data.limit=8", that make a configuration read only this number of samples and none for
// validation, with labels that are not smoothed. DataUse::overfit leaves out the random changes of samples.
std::vector<std::string> settings_of_overfit(const Config& config, std::int64_t samples);

// Runs the mode --overfit: trains on the samples in `parts` until they are learned by heart, and prints the
// losses on rank 0. Returns 0. If a signal ends the training early, prints nothing, and returns the signal.
// All ranks call it together. Throws UserError if the samples are not learned, and what overfit() throws.
int overfit_samples(Collective& ranks, const TrainerParts& parts, const TrainerOptions& options);

}  // namespace plexaura
