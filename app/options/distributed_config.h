#pragma once

#include <string>

#include "app/options/run_config.h"
#include "models/config/config.h"

namespace plexaura {

// Reads the section `distributed`, when what the other sections say is in `run`.
void read_distributed(const Section& distributed, RunOptions& run);

// What is needed before the rest is read: seconds that a rank waits for another, whether ranks of one machine share memory,
// what happens when one dies, and how they work together.
double read_deadline(const Section& distributed);
bool read_shared_memory(const Section& distributed);
OnLoss read_on_loss(const Section& distributed);
std::string read_strategy_name(const Section& distributed);

// What a parameter server does not take in, for whoever starts it.
std::string push_limit_sentence(const AsyncServerOptions& options);

// Of a run with on_loss `end`, where the MPI would let the others go on when a rank dies: that they end, which key is the
// reason, and what to do.
std::string why_others_end(const Config& config, const RunOptions& run);

}  // namespace plexaura
