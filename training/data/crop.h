#pragma once

#include "training/data/image.h"
#include "training/data/random.h"
#include "training/data/resample.h"

namespace plexaura {

// The part of a picture that becomes a sample, and whether it is mirrored.
struct Crop {
  Box box;
  bool mirror = false;
};

// The square in the middle whose side is `fraction` of the picture's shorter side.
Crop centre_crop(ImageSize size, double fraction);

// A part of random area (uniform from smallest_area to 1, of the picture's), shape (width / height
// log-uniform from 3/4 to 4/3) and place. A picture so long that ten tries find none gives the largest part
// of a permitted shape, in the middle. Where `may_mirror`, half of all are mirrored.
Crop random_crop(ImageSize size, double smallest_area, bool may_mirror, Random& random);

// The same part of the same picture at another size.
Box scaled(const Box& box, ImageSize from, ImageSize to);

}  // namespace plexaura
