#pragma once

#include <cstdint>
#include <string>

#include "training/data/dataset.h"
#include "training/data/images/image_folder.h"

namespace plexaura {

// "1 sample", "2 samples"
std::string counted(std::int64_t number, const char* one, const char* several);

// The classes of a data set and how many samples each has: "'setosa' (40), 'versicolor' (40), 'virginica' (40)". Of many
// classes the first ones, and between which numbers the others lie.
std::string classes_text(const Dataset& dataset);

// What was passed over: " (ignored: 1 file that is not an image)"; empty for nothing.
std::string ignored_text(const IgnoredFiles& ignored);

}  // namespace plexaura
