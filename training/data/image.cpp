#include "training/data/image.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "core/error.h"
#include "training/data/codecs.h"

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

}  // namespace

bool is_image(std::span<const std::uint8_t> bytes) {
  return begins_with(bytes, jpeg_signature) || begins_with(bytes, png_signature);
}

Image decode_image(std::span<const std::uint8_t> bytes, const std::string& name) {
  try {
    if (begins_with(bytes, jpeg_signature)) return codecs::decode_jpeg(bytes);
    if (begins_with(bytes, png_signature)) return codecs::decode_png(bytes);
  } catch (const codecs::CodecError& error) {
    throw UserError(
        fmt::format("{}: the image cannot be decoded: {}; replace or remove the file", name, error.what));
  }
  throw UserError(
      fmt::format("{}: is neither JPEG nor PNG by its content; convert or remove the file", name));
}

}  // namespace plexaura
