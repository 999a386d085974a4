#pragma once

#include "distributed/communicator.h"
#include "models/programs/command_line.h"
#include "models/programs/run_config.h"
#include "models/zoo/model.h"

namespace plexaura {

// The modes --evaluate and --predict: what a model with the weights of --weights, or else of the newest
// checkpoint in output.dir, says of the validation data or of files. All ranks call it together; --predict is
// for one rank. Returns the exit status.
int use_model(const CommandLine& line, Communicator& ranks, const RunData& data, const RunOptions& options,
              Model& model);

}  // namespace plexaura
