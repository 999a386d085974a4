#pragma once

#include <optional>

#include "app/data/run_data.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "distributed/communicator/communicator.h"
#include "models/zoo/model.h"

namespace plexaura {

// Whether the line asks for one of the modes of use_model().
bool uses_model(const CommandLine& line);

// What the weights that use_model() will load say of the data of their training; empty for those of other programs.
// Throws UserError where they cannot be read.
std::optional<TrainedData> trained_data(const CommandLine& line, const Config& config);

// The modes --evaluate and --predict: what a model with the weights of --weights, or else of the newest
// checkpoint in output.dir, says of the validation data or of files. All ranks call it together; --predict is
// for one rank. Returns the exit status.
int use_model(const CommandLine& line, Communicator& ranks, const RunData& data, const RunOptions& options,
              Model& model);

}  // namespace plexaura
