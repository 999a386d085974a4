#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/data/run_data.h"
#include "app/use/predicted_images.h"
#include "models/zoo/model.h"

namespace plexaura {

// Returns one line for each sample of the file, with tabs between its columns: name, the class with the
// largest output, and the probability of that class (for a model with loss squared_error: the word "output"
// and its output). For a regression the columns are the name and the targets, in the units of the training
// data. With task multi_label they are the name and, for each label whose probability is above 1/2, the label
// and its probability, or "no label". The store contains the weights. Throws UserError that names the first
// sample whose outputs are not finite. For `strict` see CompileOptions. Adds the ops of
// Program::ops_on_host() to `ops_on_host`. `images` writes the images of a reconstruction, or the masks of a
// segmentation; lines then end with their paths. If `images` is null, lines end with the pixels.
std::vector<std::string> predictions(const NamedSamples& file, Model& model, const TrainedData& trained,
                                     ParameterStore& store, Backend& backend, bool strict,
                                     std::set<std::string>& ops_on_host, PredictedImages* images);

}  // namespace plexaura
