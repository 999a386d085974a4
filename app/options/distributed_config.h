#pragma once

#include <string>

#include "app/options/run_config.h"
#include "models/config/config.h"

namespace plexaura {

// Reads the section `distributed`, when what the other sections say is in `run`.
void read_distributed(const Section& distributed, RunOptions& run);

// Reads the section `distributed` alone, for use before the other sections can be read. Its keys are not checked against
// other sections.
RunOptions read_distributed_alone(const Config& config);

// The default of distributed.on_loss, which follows from the other keys of the section.
OnLoss default_on_loss(const RunOptions& run);

// What a parameter server does not take in, for whoever starts it.
std::string push_limit_sentence(const AsyncServerOptions& options);

// Of a run with on_loss `end`, where the MPI would let the others go on when a rank dies: that they end, which key is the
// reason, and what to do.
std::string why_others_end(const Config& config, const RunOptions& run);

}  // namespace plexaura
