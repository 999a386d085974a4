#pragma once

#include "models/zoo/model.h"
#include "training/checkpoints/weights.h"

namespace plexaura {

// Removes the settings that do not define what the weights of a model mean: all but those of the section `model`, and
// the values that weights of older versions have without naming them.
void keep_model_settings(Settings& settings, const Model& model);

}  // namespace plexaura
