#pragma once

#include <string>

namespace plexaura {

// Runs a program of build/models: reads the command line and the YAML file, trains or does what another mode of the
// command line asks, and reports. `kind` is the model.name that the program accepts. Returns the exit status: 0; 2 for
// an error that the user can correct; 1 for an error of the program or the machine, and if --check-gradients finds a
// wrong gradient; 130 or 143 if SIGINT or SIGTERM ended the run, after a checkpoint.
int run_program(const std::string& kind, int argc, const char* const* argv);

}  // namespace plexaura
