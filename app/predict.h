#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/data/run_data.h"
#include "models/zoo/model.h"

namespace plexaura {

// One line for each sample of the file, with tabs between: its name, the class that the model ranks first,
// and the probability of that class (for a model of loss squared_error: the word "output" and its output). The
// store holds the weights. `strict`: see CompileOptions. Adds to `ops_on_host` what Program::ops_on_host() names. Throws UserError that names the sample whose outputs are not finite.
std::vector<std::string> predictions(const NamedSamples& file, Model& model,
                                     const std::vector<std::string>& class_names, ParameterStore& store,
                                     Backend& backend, bool strict, std::set<std::string>& ops_on_host);

}  // namespace plexaura
