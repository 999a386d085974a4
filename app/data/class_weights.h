#pragma once

#include <vector>

#include "models/config/config.h"
#include "training/data/dataset.h"

namespace plexaura {

// Returns the weight of each class with model.class_weights "balanced": the number of all samples, divided by the number
// of classes and by the samples of the class, as "balanced" of scikit-learn. Throws UserError for a class without
// samples. `model`: the section.
std::vector<double> balanced_weights(const Section& model, const Dataset& train);

}  // namespace plexaura
