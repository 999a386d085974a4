#pragma once

#include <string>

#include "models/zoo/model.h"

namespace plexaura {

// Returns a table of the model's layers in the order of their ops: path, ops, output shape for one
// sample (without the batch), and number of the parameters' elements; and the totals. Tied weights count
// once, at their first name. Names the parameters of the model if they have no names yet.
std::string summary(Model& model);

// Returns a text such as "25,557,032".
std::string with_commas(std::int64_t number);

}  // namespace plexaura
