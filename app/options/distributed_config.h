#pragma once

#include <string>

#include "app/options/run_config.h"
#include "models/config/config.h"

namespace plexaura {

// Reads the section `distributed`, when what the other sections say is in `run`.
void read_distributed(const Section& distributed, RunOptions& run);

// What is needed before the rest is read: what the section `distributed` alone says, nothing else in the options.
RunOptions read_distributed_alone(const Config& config);

// What happens when a rank dies where the file does not say it.
OnLoss default_on_loss(const RunOptions& run);

// What a parameter server does not take in, for whoever starts it.
std::string push_limit_sentence(const AsyncServerOptions& options);

// Of a run with on_loss `end`, where the MPI would let the others go on when a rank dies: that they end, which key is the
// reason, and what to do.
std::string why_others_end(const Config& config, const RunOptions& run);

}  // namespace plexaura
