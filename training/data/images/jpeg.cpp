#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

// The order matters: jpeglib.h needs cstdio, and jerror.h's numbers follow jpeglib.h's settings.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "core/base/error.h"
#include "training/data/images/codecs.h"

// libjpeg reports an error by calling a function that must not return, and no C++ exception may pass through
// its frames. So errors use longjmp. Each member function below that calls libjpeg has its own setjmp, and
// has no object with a destructor after it.
namespace plexaura::codecs {

namespace {

struct JpegErrors {
  jpeg_error_mgr manager{};  // first member: libjpeg's pointer to it is also a pointer to this struct
  std::jmp_buf escape{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

[[noreturn]] void fail_in_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->manager.format_message(info, errors->message.data());
  std::longjmp(errors->escape, 1);
}

// Warnings after which libjpeg would fill the rest of the image with grey or noise.
bool is_damage(int code) {
  constexpr std::array damage{JWRN_JPEG_EOF,       JWRN_HIT_MARKER,  JWRN_HUFF_BAD_CODE,
                              JWRN_ARITH_BAD_CODE, JWRN_MUST_RESYNC, JWRN_BOGUS_PROGRESSION};
  return std::ranges::find(damage, code) != damage.end();
}

void on_message(j_common_ptr info, int level) {
  constexpr int warning = -1;
  if (level == warning && is_damage(info->err->msg_code)) fail_in_jpeg(info);
}

void set_up(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = fail_in_jpeg;
  errors.manager.emit_message = on_message;
}

// Converts libjpeg's CMYK to RGB. 255 means no ink, as Adobe's programs write it. Pillow reads every JPEG
// with four components in this way, with or without Adobe's marker.
void convert_cmyk(std::span<const std::uint8_t> cmyk, std::uint8_t* rgb) {
  for (std::size_t pixel = 0; pixel * 4 < cmyk.size(); ++pixel)
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const int product = cmyk[pixel * 4 + channel] * cmyk[pixel * 4 + 3];
      rgb[pixel * 3 + channel] = static_cast<std::uint8_t>((product + 127) / 255);
    }
}

class JpegReader {
 public:
  // Delegates to the other constructor, so that the destructor runs if this one throws.
  explicit JpegReader(std::span<const std::uint8_t> bytes) : JpegReader() {
    if (!read_header(bytes)) throw_error();
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info_); }

  Image read() {
    // The image is allocated before start(), which decodes a whole progressive file.
    Image image = make_image(info_.image_width, info_.image_height);
    if (!start()) throw_error();
    const bool is_cmyk = info_.out_color_space == JCS_CMYK;
    std::vector<std::uint8_t> cmyk(is_cmyk ? static_cast<std::size_t>(image.width * 4) : 0);
    for (std::int64_t row = 0; row < image.height; ++row) {
      std::uint8_t* rgb = image.pixels.data() + row * image.width * 3;
      if (!read_row(is_cmyk ? cmyk.data() : rgb)) throw_error();
      if (is_cmyk) convert_cmyk(cmyk, rgb);
    }
    if (!finish()) throw_error();
    return image;
  }

 private:
  JpegReader() {
    set_up(errors_);
    info_.err = &errors_.manager;
  }

  [[noreturn]] void throw_error() const { throw CodecError{errors_.message.data()}; }

  bool read_header(std::span<const std::uint8_t> bytes) {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool start() {
    if (setjmp(errors_.escape) != 0) return false;
    const bool four_inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = four_inks ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info_);
    return true;
  }

  bool read_row(std::uint8_t* row) {
    if (setjmp(errors_.escape) != 0) return false;
    return jpeg_read_scanlines(&info_, &row, 1) == 1;
  }

  bool finish() {
    if (setjmp(errors_.escape) != 0) return false;
    return jpeg_finish_decompress(&info_) != FALSE;
  }

  jpeg_decompress_struct info_{};
  JpegErrors errors_;
};

class JpegWriter {
 public:
  JpegWriter() {
    set_up(errors_);
    info_.err = &errors_.manager;
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() {
    jpeg_destroy_compress(&info_);
    std::free(memory_);
  }

  std::vector<std::uint8_t> write(const Image& image, int quality) {
    if (!start(image, quality)) throw_error();
    for (std::int64_t row = 0; row < image.height; ++row)
      if (!write_row(image.pixels.data() + row * image.width * 3)) throw_error();
    if (!finish()) throw_error();
    return {memory_, memory_ + size_};
  }

 private:
  [[noreturn]] void throw_error() const { throw CodecError{errors_.message.data()}; }

  bool start(const Image& image, int quality) {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_create_compress(&info_);
    jpeg_mem_dest(&info_, &memory_, &size_);
    info_.image_width = static_cast<JDIMENSION>(image.width);
    info_.image_height = static_cast<JDIMENSION>(image.height);
    info_.input_components = 3;
    info_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
    jpeg_start_compress(&info_, TRUE);
    return true;
  }

  bool write_row(const std::uint8_t* pixels) {
    if (setjmp(errors_.escape) != 0) return false;
    JSAMPROW row = const_cast<JSAMPROW>(pixels);  // libjpeg only reads it
    return jpeg_write_scanlines(&info_, &row, 1) == 1;
  }

  bool finish() {
    if (setjmp(errors_.escape) != 0) return false;
    jpeg_finish_compress(&info_);
    return true;
  }

  jpeg_compress_struct info_{};
  JpegErrors errors_;
  unsigned char* memory_ = nullptr;
  unsigned long size_ = 0;
};

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes) { return JpegReader(bytes).read(); }

}  // namespace plexaura::codecs

namespace plexaura {

std::vector<std::uint8_t> encode_jpeg(const Image& image, int quality) {
  try {
    return codecs::JpegWriter().write(image, quality);
  } catch (const codecs::CodecError& error) {
    throw UserError(fmt::format("an image of {}x{} cannot be encoded as JPEG: {}; sides go from 1 to {}",
                                image.width, image.height, error.what, JPEG_MAX_DIMENSION));
  }
}

}  // namespace plexaura
