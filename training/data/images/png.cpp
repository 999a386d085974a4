#include <algorithm>
#include <array>
#include <csetjmp>
#include <fmt/format.h>
#include <png.h>

#include "core/base/error.h"
#include "training/data/images/codecs.h"

// libpng reports an error by calling a function that must not return, and no C++ exception may pass through
// its frames. So errors use longjmp. Each member function below that calls libpng has its own setjmp, and has
// no object with a destructor after it.
namespace plexaura::codecs {

namespace {

struct PngErrors {
  std::jmp_buf escape{};
  std::array<char, 256> message{};
};

[[noreturn]] void fail_in_png(png_structp png, png_const_charp message) {
  auto& errors = *static_cast<PngErrors*>(png_get_error_ptr(png));
  const std::string_view text(message);
  text.copy(errors.message.data(), errors.message.size() - 1);
  std::longjmp(errors.escape, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep into, std::size_t count) {
  auto& left = *static_cast<std::span<const std::uint8_t>*>(png_get_io_ptr(png));
  if (count > left.size()) png_error(png, "premature end of file");
  std::copy_n(left.begin(), count, into);
  left = left.subspan(count);
}

class PngReader {
 public:
  // Delegates to the other constructor, so that the destructor runs if this one throws.
  explicit PngReader(std::span<const std::uint8_t> bytes) : PngReader() {
    left_ = bytes;
    if (!read_header()) throw_error();
  }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  Image read() {
    Image image = make_image(png_get_image_width(png_, info_), png_get_image_height(png_, info_));
    std::vector<png_bytep> rows;
    for (std::int64_t y = 0; y < image.height; ++y) rows.push_back(image.pixels.data() + y * image.width * 3);
    if (!read_pixels(rows.data())) throw_error();
    return image;
  }

  // Reads the numbers in the file: grey values of at most 8 bits, or indices of a palette.
  Image read_numbers() {
    const int kind = png_get_color_type(png_, info_);
    if (kind != PNG_COLOR_TYPE_GRAY && kind != PNG_COLOR_TYPE_PALETTE)
      throw CodecError{"its pixels are colours or transparent, and not numbers of classes"};
    if (png_get_bit_depth(png_, info_) > 8) throw CodecError{"its numbers have 16 bits"};
    Image image = make_image(png_get_image_width(png_, info_), png_get_image_height(png_, info_));
    std::vector<std::uint8_t> numbers(image.pixels.size() / 3);
    std::vector<png_bytep> rows;
    for (std::int64_t y = 0; y < image.height; ++y) rows.push_back(numbers.data() + y * image.width);
    if (!read_packed(rows.data())) throw_error();
    for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = numbers[i / 3];
    return image;
  }

 private:
  PngReader() {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, fail_in_png, ignore_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, &left_, read_bytes);
  }

  [[noreturn]] void throw_error() const { throw CodecError{errors_.message.data()}; }

  bool read_header() {
    if (setjmp(errors_.escape) != 0) return false;
    png_read_info(png_, info_);
    return true;
  }

  // Reads values as the file contains them: gamma, colour profile and transparency are ignored.
  bool read_pixels(png_bytepp rows) {
    if (setjmp(errors_.escape) != 0) return false;
    png_set_expand(png_);    // palettes become colours; fewer than 8 bits become 8
    png_set_strip_16(png_);  // keeps the upper 8 bits
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    png_read_image(png_, rows);
    return true;
  }

  // Reads one byte for each pixel, also if the file has fewer bits.
  bool read_packed(png_bytepp rows) {
    if (setjmp(errors_.escape) != 0) return false;
    png_set_packing(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    png_read_image(png_, rows);
    return true;
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const std::uint8_t> left_;
  PngErrors errors_;
};

}  // namespace

Image decode_png(std::span<const std::uint8_t> bytes) { return PngReader(bytes).read(); }

Image decode_png_numbers(std::span<const std::uint8_t> bytes) { return PngReader(bytes).read_numbers(); }

}  // namespace plexaura::codecs

namespace plexaura {

namespace {

// Encodes a PNG file. `format` is PNG_FORMAT_RGB or PNG_FORMAT_GRAY, with 3 or 1 bytes for each pixel.
std::vector<std::uint8_t> encode_pixels(std::int64_t width, std::int64_t height, png_uint_32 format,
                                        std::span<const std::uint8_t> pixels) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(width);
  header.height = static_cast<png_uint_32>(height);
  header.format = format;
  png_alloc_size_t size = 0;
  std::vector<std::uint8_t> bytes;
  const auto write = [&](void* memory) {
    return png_image_write_to_memory(&header, memory, &size, 0, pixels.data(), 0, nullptr) != 0;
  };
  bool is_written = write(nullptr);  // this call only finds the size
  if (is_written) {
    bytes.resize(size);
    is_written = write(bytes.data());
  }
  if (!is_written)
    throw UserError(
        fmt::format("an image of {}x{} cannot be encoded as PNG: {}", width, height, header.message));
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<std::uint8_t> encode_png(const Image& image) {
  return encode_pixels(image.width, image.height, PNG_FORMAT_RGB, image.pixels);
}

std::vector<std::uint8_t> encode_grey_png(std::int64_t width, std::int64_t height,
                                          std::span<const std::uint8_t> values) {
  return encode_pixels(width, height, PNG_FORMAT_GRAY, values);
}

}  // namespace plexaura
