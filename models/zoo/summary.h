#pragma once

#include <string>

#include "models/zoo/model.h"

namespace plexaura {

// A table of the model's layers in the order in which they finish: path, ops, shape of the output for one
// sample (without the batch), trainable elements; and the totals. Tied weights count once, where they are
// named; a dropout, which does nothing in inference, has no line. Names the model if it has no names yet.
std::string summary(Model& model);

// "25,557,032"
std::string with_commas(std::int64_t number);

}  // namespace plexaura
