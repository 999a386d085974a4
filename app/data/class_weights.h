#pragma once

#include <memory>
#include <vector>

#include "app/data/data_options.h"
#include "models/config/config.h"
#include "training/data/dataset.h"

namespace plexaura {

// Returns the weight of each class with model.class_weights "balanced": the number of all samples, divided by the number
// of classes and by the samples of the class, as "balanced" of scikit-learn. Throws UserError for a class without
// samples. `model` is the section `model`.
std::vector<double> balanced_weights(const Section& model, const Dataset& train);

// Returns the weights with which data.sampling draws the samples. Throws UserError if data.sampling_weights does not fit the
// classes.
std::shared_ptr<const std::vector<double>> drawing_weights(const Section& data, const DataOptions& options,
                                                           const Dataset& train);

}  // namespace plexaura
