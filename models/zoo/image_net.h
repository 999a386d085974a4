#pragma once

#include <string_view>

#include "core/tensor/shape.h"
#include "models/config/keys.h"

namespace plexaura {

// What the nets for images, [C, H, W], share. `model` is the name of the model in a YAML file.

// Returns the number of channels of a sample. Throws UserError for a sample that is no image.
std::int64_t image_channels(const Shape& sample, std::string_view model);

// Throws UserError, with line and column, for samples that are no images.
void require_images(const Section& yaml, const Shape& sample, std::string_view model);

// The key `synchronised_batch_norm`.
Key synchronised_batch_norm_key(bool& into, Need needs = {});

}  // namespace plexaura
