#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "models/zoo/model.h"

namespace plexaura {

// Samples without labels, prepared as those of the validation data.
struct NamedSamples {
  std::vector<std::string> names;
  Tensor samples;  // [names, ...]: float32, or uint8 for images
};

// Reads a file that was named for --predict: an image, or a table with a sample in each row. Throws
// UserError.
using ReadSamples = std::function<NamedSamples(const std::string& file)>;

// One line for each sample of the file, with tabs between: its name, the class that the model ranks first,
// and the probability of that class (for a model of loss squared_error: the word "output" and its output). The
// store holds the weights. Throws UserError that names the sample whose outputs are not finite.
std::vector<std::string> predictions(const NamedSamples& file, Model& model,
                                     const std::vector<std::string>& class_names, ParameterStore& store,
                                     Backend& backend);

}  // namespace plexaura
