#pragma once

#include <string>

#include "app/options/run_config.h"
#include "models/config/config.h"

namespace plexaura {

// Reads the section `distributed`. The options of the other sections must already be in `run`.
void read_distributed(const Section& distributed, RunOptions& run);

// Reads only the section `distributed`, for use before the other sections can be read. Does not check its
// keys against other sections.
RunOptions read_distributed_alone(const Config& config);

// Returns the default of distributed.on_loss, which depends on the other keys of the section.
OnLoss default_on_loss(const RunOptions& run);

// Returns a sentence for the user about the pushes that a parameter server refuses.
std::string push_limit_sentence(const AsyncServerOptions& options);

// Returns a sentence that says that the other ranks end if a rank dies, which key is the reason, and what to
// do. Called for a run with on_loss `end` whose MPI would let the other ranks continue.
std::string why_others_end(const Config& config, const RunOptions& run);

}  // namespace plexaura
