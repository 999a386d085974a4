#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/data/images/image.h"

namespace plexaura {

// Returns the names of the kinds of shapes. The number of a kind is its position.
const std::vector<std::string>& shape_names();

// Draws an image of size x size pixels with one to nine shapes of one kind. Their number and each shape's
// proportions, place, scale, rotation, colours and texture are random, and so are colours, pattern and noise
// of the background. None of these depends on the kind. The image depends on the arguments alone. Throws
// UserError if the kind does not exist or if the size is below 8 pixels.
Image draw_shapes(std::int64_t kind, std::int64_t size, std::uint64_t seed);

}  // namespace plexaura
