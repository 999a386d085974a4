#pragma once

#include <string>

namespace plexaura {

// The main function of the programs mlp, convnet and resnet: reads the command line and the YAML file,
// trains, reports. `kind` is the model.name that the program accepts. Returns the exit status: 0; 2 for
// what a user can mend; 1 for a fault of ours or the machine's; 130 and 143 where SIGINT and SIGTERM ended
// the run, with a checkpoint.
int run_program(const std::string& kind, int argc, const char* const* argv);

}  // namespace plexaura
