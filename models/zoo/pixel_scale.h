#pragma once

#include "core/ops/normalise_image.h"
#include "models/config/config.h"

namespace plexaura {

// How the keys mean and stddev of a section `data` say that images are normalised, with the defaults of its format;
// the default PixelScale where it reads no images. UserError, with the line and column, for a key that is wrong.
PixelScale read_pixel_scale(const Section& data);

}  // namespace plexaura
