#include <png.h>

#include "training/data/codecs.h"

namespace plexaura::codecs {

namespace {

// libpng's simplified reader: it converts every kind of PNG by itself.
class PngReader {
 public:
  explicit PngReader(std::span<const std::uint8_t> bytes) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, bytes.data(), bytes.size()) == 0)
      throw CodecError{image_.message};
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // as for 8 bits; libpng would take 16 bits for linear light
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_image_free(&image_); }

  ImageSize size() const { return {image_.width, image_.height}; }

  Image read() {
    image_.format = PNG_FORMAT_RGB;
    Image result = make_image(image_.width, image_.height);
    constexpr png_color white{255, 255, 255};
    if (png_image_finish_read(&image_, &white, result.pixels.data(), 0, nullptr) == 0)
      throw CodecError{image_.message};
    return result;
  }

 private:
  png_image image_{};
};

}  // namespace

ImageSize png_size(std::span<const std::uint8_t> bytes) { return PngReader(bytes).size(); }

Image decode_png(std::span<const std::uint8_t> bytes) { return PngReader(bytes).read(); }

}  // namespace plexaura::codecs
