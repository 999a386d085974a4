#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/data/images/image.h"

namespace plexaura {

// The kinds of shape that can be drawn; a kind's number is its place.
const std::vector<std::string>& shape_names();

// An image of size x size pixels of one to nine shapes of one kind. Their number, and each one's
// proportions, place, scale, rotation, colours and texture, are drawn by chance, and so are the colours,
// pattern and noise behind them: none comes more often with one kind than with another. A function of the
// arguments alone. Throws UserError for a kind that does not exist and a size below 8 pixels.
Image draw_shapes(std::int64_t kind, std::int64_t size, std::uint64_t seed);

}  // namespace plexaura
