#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plexaura {

struct ImageSize {
  std::int64_t width = 0;
  std::int64_t height = 0;
};

// A picture in 8-bit sRGB.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3], rows from the top
};

// The functions below are thread-safe. They tell JPEG and PNG apart by content; `name` is how errors call the
// picture.

// Whether the bytes begin as a JPEG or PNG does.
bool is_image(std::span<const std::uint8_t> bytes);

// The size that the header gives. Throws UserError for what is neither JPEG nor PNG, and for a broken header.
ImageSize read_image_size(std::span<const std::uint8_t> bytes, const std::string& name);

// The picture as RGB: grey, CMYK and YCCK JPEG, and PNG with a palette, 16 bits or transparency (over white),
// are converted. Of a JPEG whose picture is wanted at `scale` (0 < scale <= 1) no more is decoded than the
// smallest of 1/8, 1/4, 1/2 and 1 that is not below it. Throws UserError for what is neither, is broken or
// cut off anywhere, or has more than 2^27 pixels.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name, double scale = 1);

// A JPEG file with `quality` from 1 to 100. Throws UserError for a picture that JPEG cannot hold (a side of 0
// or above 65,500).
std::vector<std::uint8_t> encode_jpeg(const Image& image, int quality = 90);

}  // namespace plexaura
