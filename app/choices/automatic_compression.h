#pragma once

#include <vector>

#include "app/choices/rank_choice.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "core/params/parameter_store.h"
#include "distributed/communicator/communicator.h"

namespace plexaura {

// Replaces `distributed.compression: auto` in the options by the compression of the checkpoint that the run resumes from,
// or by one that is chosen by measurements now; with one rank by `none`. `exchange` is the communicator of the ranks that
// exchange gradients. Afterwards all of them have the same options. Throws UserError on all ranks if this build does not
// know the compression of the checkpoint. Collective.
ChoiceReport decide_compression(Communicator& exchange, const CommandLine& line,
                                const std::vector<ParameterSpec>& parameters, RunOptions& options);

}  // namespace plexaura
