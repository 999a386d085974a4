#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "training/data/images/image.h"

// One function for each file format, called by decode_image(). They throw CodecError.
namespace plexaura::codecs {

// The fault of a file, without its name: "premature end of file".
struct CodecError {
  std::string what;
};

Image decode_jpeg(std::span<const std::uint8_t> bytes);
Image decode_png(std::span<const std::uint8_t> bytes);
// Decodes a PNG file for decode_class_mask(), so that its pixels hold class numbers.
Image decode_png_numbers(std::span<const std::uint8_t> bytes);

// Returns an image of this size with undefined pixels. Throws CodecError if a side is below 1 or the size is
// implausibly large.
Image make_image(std::int64_t width, std::int64_t height);

}  // namespace plexaura::codecs
