#pragma once

#include <vector>

#include "app/options/run_config.h"
#include "core/params/parameter_store.h"

namespace plexaura {

// Freezes the parameters that training.freeze names, and checks that each group of training.optimizer.groups has
// parameters. Throws UserError with the place of the pattern in `config`, from which `options` were read.
void apply_patterns(const Config& config, const RunOptions& options, std::vector<ParameterSpec>& specs);

}  // namespace plexaura
