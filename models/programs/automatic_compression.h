#pragma once

#include <string>
#include <vector>

#include "core/params/parameter_store.h"
#include "distributed/communicator.h"
#include "models/programs/command_line.h"
#include "models/programs/run_config.h"
#include "training/json_log.h"

namespace plexaura {

// What a person is told of a choice, and the log; both empty where nothing was chosen.
struct AutomaticCompression {
  std::string sentence = {};
  std::vector<JsonField> fields = {};
};

// Puts a compression in the place of `distributed.compression: auto`: that of the checkpoint which the run goes on from, or
// one that is chosen by measurements now. A run that goes on measures, too, to tell whether it would choose another one. `exchange`: of the
// ranks that exchange gradients. All of them together; their options are the same afterwards.
AutomaticCompression settle_compression(Communicator& exchange, const CommandLine& line,
                                        const std::vector<ParameterSpec>& parameters, RunOptions& options);

}  // namespace plexaura
