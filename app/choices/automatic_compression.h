#pragma once

#include <vector>

#include "app/choices/told_choice.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "core/params/parameter_store.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Puts a compression in the place of `distributed.compression: auto`: that of the checkpoint which the run goes on from, or
// one that is chosen by measurements now. A run that goes on measures, too, to tell whether it would choose another one. `exchange`: of the
// ranks that exchange gradients. All of them together; their options are the same afterwards.
ToldChoice settle_compression(Communicator& exchange, const CommandLine& line,
                              const std::vector<ParameterSpec>& parameters, RunOptions& options);

}  // namespace plexaura
