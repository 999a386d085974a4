#pragma once

#include <optional>

#include "app/data/run_data.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "distributed/communicator/communicator.h"
#include "models/zoo/model.h"

namespace plexaura {

// True if the command line asks for a mode of use_model().
bool uses_model(const CommandLine& line);

// Returns the facts about the training data that the weights for use_model() contain. Returns nothing for
// weights of other programs. Throws UserError if the weights cannot be read.
std::optional<TrainedData> trained_data(const CommandLine& line, const Config& config);

// Collective. Runs the modes --evaluate, --predict and --generate: evaluates a model on the validation data,
// predicts the samples of files, or continues a text, with the weights of --weights or else of the newest
// checkpoint in output.dir. --predict and --generate work with one rank only. Returns the exit status.
int use_model(const CommandLine& line, Communicator& ranks, const RunData& data, const RunOptions& options,
              Model& model);

}  // namespace plexaura
