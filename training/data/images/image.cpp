#include "training/data/images/image.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/base/error.h"
#include "training/data/images/codecs.h"
#include "training/files/file.h"

namespace plexaura {

namespace codecs {

Image make_image(std::int64_t width, std::int64_t height) {
  constexpr std::int64_t most_pixels = std::int64_t{1} << 27;
  if (width < 1 || height < 1 || width > most_pixels / height)
    throw CodecError{fmt::format("{}x{} pixels is beyond the limit of {}", width, height, most_pixels)};
  return {width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3))};
}

}  // namespace codecs

namespace {

constexpr std::array<std::uint8_t, 3> jpeg_signature{0xff, 0xd8, 0xff};
constexpr std::array<std::uint8_t, 8> png_signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

bool begins_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> signature) {
  return bytes.size() >= signature.size() && std::ranges::equal(bytes.first(signature.size()), signature);
}

bool has_at(std::span<const std::uint8_t> bytes, std::size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() &&
         std::ranges::equal(bytes.subspan(offset, text.size()), text, [](std::uint8_t byte, char letter) {
           return byte == static_cast<std::uint8_t>(letter);
         });
}

}  // namespace

bool is_image(std::span<const std::uint8_t> bytes) {
  return begins_with(bytes, jpeg_signature) || begins_with(bytes, png_signature);
}

std::string_view unread_format(std::span<const std::uint8_t> bytes) {
  if (has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WEBP")) return "WebP";
  if (has_at(bytes, 0, "GIF8")) return "GIF";
  if (has_at(bytes, 0, {"II*\0", 4}) || has_at(bytes, 0, {"MM\0*", 4})) return "TIFF";
  for (const char* brand : {"avif", "heic", "heix", "mif1"})
    if (has_at(bytes, 4, "ftyp") && has_at(bytes, 8, brand)) return "HEIF";
  // After the length of the file, a BMP has four bytes of 0.
  return has_at(bytes, 0, "BM") && has_at(bytes, 6, {"\0\0\0\0", 4}) ? "BMP" : "";
}

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  try {
    if (begins_with(bytes, jpeg_signature)) return codecs::decode_jpeg(bytes);
    if (begins_with(bytes, png_signature)) return codecs::decode_png(bytes);
  } catch (const codecs::CodecError& error) {
    throw UserError(
        fmt::format("{}: the image cannot be decoded: {}; replace or remove the file", name, error.what));
  }
  const std::string_view format = unread_format(bytes);
  throw UserError(fmt::format("{}: is neither JPEG nor PNG by its content{}{}; convert or remove the file",
                              name, format.empty() ? "" : ", but ", format));
}

Image read_image_file(const std::filesystem::path& file) {
  return decode_image(InputFile(file).read_all(), file.string());
}

Image decode_class_mask(std::span<const std::uint8_t> bytes, const std::string& name) {
  std::string fault = "it is no PNG file";
  if (begins_with(bytes, png_signature)) try {
      return codecs::decode_png_numbers(bytes);
    } catch (const codecs::CodecError& error) {
      fault = error.what;
    }
  throw UserError(
      fmt::format("{}: the mask cannot be read: {}; give a PNG file whose grey values of at most 8 bits, or "
                  "whose indices of a palette, are the numbers of the classes",
                  name, fault));
}

}  // namespace plexaura
