#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// An image in 8-bit sRGB.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3], rows from the top
};

// The functions below are thread-safe. They tell JPEG and PNG apart by content; `name` is how errors call the
// image.

// Whether the bytes begin as a JPEG or PNG does.
bool is_image(std::span<const std::uint8_t> bytes);

// The format of a picture that is not read, by its first 12 bytes: "WebP", "BMP", "GIF", "TIFF" or "HEIF" (which AVIF is,
// too); empty for what is none of them.
std::string_view unread_format(std::span<const std::uint8_t> bytes);

// The image as RGB, with the values that Pillow's convert("RGB") gives: grey, CMYK and YCCK JPEG, and PNG
// of every kind, are converted; gamma and colour profiles are ignored, transparency is dropped. One thing
// differs: of grey PNG with 16 bits the upper 8 are taken, where Pillow clips. Throws UserError for what is
// neither, is broken or cut off anywhere, or has more than 2^27 pixels.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name);

// A JPEG file with `quality` from 1 to 100. Throws UserError for an image that JPEG cannot hold (a side of 0
// or above 65,500).
std::vector<std::uint8_t> encode_jpeg(const Image& image, int quality = 90);

}  // namespace plexaura
