#pragma once

#include <string>
#include <vector>

#include "models/config/config.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// Throws UserError with the place of training.goal.metric, or of training.schedule.metric of a plateau, if it
// names no metric of the validation. `metrics` has the names of the metrics that the model reports. The loss
// always exists.
void check_observed_metrics(const Config& config, const TrainerOptions& options,
                            std::vector<std::string> metrics);

}  // namespace plexaura
