#pragma once

#include <cstdint>
#include <string>

#include "core/ops/normalise_image.h"
#include "training/data/dataset.h"
#include "training/data/images/image_folder.h"

namespace plexaura {

// Returns a text such as "1 sample" or "2 samples".
std::string counted(std::int64_t number, const char* one, const char* several);

// Returns the classes of a data set and the number of samples in each: "'setosa' (40), 'versicolor' (40),
// 'virginica' (40)". After the first 12 classes, it shows only the least and largest number of the others.
std::string classes_text(const Dataset& dataset);

// Returns a text about ignored files: " (ignored: 1 file that is not an image)"; empty if there are none.
std::string ignored_text(const IgnoredFiles& ignored);

// Returns how images become samples of training and of validation: crops, augmentation and normalisation.
std::string preparation_text(const ImageFolderOptions& train, const ImageFolderOptions& validation,
                             const PixelScale& pixels);

}  // namespace plexaura
