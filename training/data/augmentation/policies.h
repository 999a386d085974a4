#pragma once

#include <string_view>

#include "training/data/augmentation/functional.h"

namespace plexaura::augmentation {

// Applies an operation of torchvision's automatic policies: "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY",
// "Rotate", "Brightness", "Color", "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast" or "Equalize". Throws
// InternalError for another name.
void apply_policy(Image& image, std::string_view operation, double magnitude, Interpolation interpolation,
                  Colour fill);

}  // namespace plexaura::augmentation
