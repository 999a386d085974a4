#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/exchange/collective.h"
#include "models/config/config.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// Returns the settings, such as "data.limit=8", with which a configuration reads only so many samples, and labels that
// are not smoothed. DataUse::overfit leaves out what changes samples at random.
std::vector<std::string> settings_of_overfit(const Config& config, std::int64_t samples);

// The mode --overfit: trains on the samples in `parts` until they are learned by heart, and prints the losses on rank
// 0. A signal ends it early: it prints nothing then, and returns the signal, and otherwise 0. All ranks call it
// together. Throws UserError if the samples are not learned, and as overfit() does.
int overfit_samples(Collective& ranks, const TrainerParts& parts, const TrainerOptions& options);

}  // namespace plexaura
