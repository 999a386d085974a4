#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plexaura {

// An image in 8-bit sRGB.
struct Image {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3], top row first
};

// The functions below are thread-safe. They recognise JPEG and PNG by content. `name` is the name of the
// image in errors.

// True if the bytes begin like a JPEG or PNG.
bool is_image(std::span<const std::uint8_t> bytes);

// Returns the format of a picture that is not supported, by its first 12 bytes: "WebP", "BMP", "GIF", "TIFF"
// or "HEIF" (which includes AVIF); empty if it is none of these.
std::string_view unread_format(std::span<const std::uint8_t> bytes);

// Decodes an image to RGB, with the values of Pillow's convert("RGB"). Converts grey, CMYK and YCCK JPEG, and
// PNG of every kind; ignores gamma and colour profiles; drops transparency. One difference: of grey PNG with
// 16 bits it takes the upper 8 bits, where Pillow clips. Throws UserError if the data is neither JPEG nor
// PNG, is damaged or incomplete, or has more than 2^27 pixels.
Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name);

// Reads and decodes an image. Throws UserError, which names the file, also if it cannot be read.
Image read_image_file(const std::filesystem::path& file);

// Decodes a mask: a PNG file of grey values of at most 8 bits, or with a palette. The class of a pixel is its grey value,
// which is not scaled, or its index in the palette. All three channels of the result hold the class. Throws UserError for
// JPEG, which changes values; for colours, an alpha channel and 16 bits; and as decode_image() does.
Image decode_class_mask(std::span<const std::uint8_t> bytes, const std::string& name);

// Encodes a JPEG file with `quality` from 1 to 100. Throws UserError for an image that JPEG cannot represent
// (a side of 0 or above 65,500).
std::vector<std::uint8_t> encode_jpeg(const Image& image, int quality = 90);

// Encodes a PNG file. Throws UserError for an image that PNG cannot represent, such as one without pixels.
std::vector<std::uint8_t> encode_png(const Image& image);
// Encodes a PNG file with 8 bits of grey for each pixel. `values` are [height, width].
std::vector<std::uint8_t> encode_grey_png(std::int64_t width, std::int64_t height,
                                          std::span<const std::uint8_t> values);

}  // namespace plexaura
