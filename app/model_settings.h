#pragma once

#include "models/zoo/model.h"
#include "training/checkpoints/weights.h"

namespace plexaura {

// Removes the settings that do not define what the weights of a model mean. Settings of the section `model`
// stay, except those with values that weights of older versions imply without naming them.
void keep_model_settings(Settings& settings, const Model& model);

}  // namespace plexaura
