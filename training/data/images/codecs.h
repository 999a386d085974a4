#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "training/data/images/image.h"

// One function per file format, behind decode_image. They throw CodecError.
namespace plexaura::codecs {

// What is wrong with the file, without its name: "premature end of file".
struct CodecError {
  std::string what;
};

Image decode_jpeg(std::span<const std::uint8_t> bytes);
Image decode_png(std::span<const std::uint8_t> bytes);

// An image of this size with undefined pixels. Throws CodecError when it is too large to be true.
Image make_image(std::int64_t width, std::int64_t height);

}  // namespace plexaura::codecs
