#pragma once

#include "app/options/command_line.h"
#include "app/setup.h"

namespace plexaura {

// Runs the mode --check-gradients: compares the gradients of the model with differences, in float64, on the
// first micro-batch of a run with this configuration, and prints a row for each parameter, the parameters that get
// no gradient, and a sentence. Returns the exit status: 0 if all gradients agree, otherwise 1.
int check_model_gradients(const CommandLine& line, Setup setup);

}  // namespace plexaura
