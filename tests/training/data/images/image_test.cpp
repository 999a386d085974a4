#include "training/data/images/image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>

// clang-format off
#include <jpeglib.h>
// clang-format on

#include "tests/training/data/data_support.h"
#include "training/data/images/codecs.h"
#include "training/files/file.h"

namespace plexaura::testing::image_test {

namespace {

using Bytes = std::vector<std::uint8_t>;
using Pixel = std::array<int, 3>;

Pixel pixel_of(const Image& image, std::int64_t x, std::int64_t y) {
  const auto at = static_cast<std::size_t>((y * image.width + x) * 3);
  return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

bool near(const Pixel& a, const Pixel& b, int tolerance) {
  return std::ranges::equal(a, b, [&](int x, int y) { return std::abs(x - y) <= tolerance; });
}

// Returns a JPEG of one colour. `space` is the colour space of `colour`, and `stored` that of the file.
Bytes plain_jpeg(J_COLOR_SPACE space, J_COLOR_SPACE stored, const Bytes& colour, bool progressive = false,
                 bool of_adobe = true) {
  constexpr int side = 16;
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = side;
  info.image_height = side;
  info.input_components = static_cast<int>(colour.size());
  info.in_color_space = space;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, stored);
  if (!of_adobe) info.write_Adobe_marker = FALSE;
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  Bytes row;
  for (int i = 0; i < side; ++i) row.insert(row.end(), colour.begin(), colour.end());
  JSAMPROW rows = row.data();
  for (int i = 0; i < side; ++i) jpeg_write_scanlines(&info, &rows, 1);
  jpeg_finish_compress(&info);
  Bytes bytes(memory, memory + size);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

Image gradient(std::int64_t width, std::int64_t height) {
  Image image{width, height, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (const std::int64_t value : {x * 255 / width, y * 255 / height, std::int64_t{128}})
        image.pixels.push_back(static_cast<std::uint8_t>(value));
  return image;
}

}  // namespace

TEST_CASE("an image of no pixel, or of too many, is refused") {
  const auto refuses = [](std::int64_t width, std::int64_t height) {
    try {
      codecs::make_image(width, height);
      return false;
    } catch (const codecs::CodecError&) {
      return true;
    }
  };
  CHECK(refuses(0, 1));
  CHECK(refuses(1, 0));
  CHECK(refuses(1 << 14, (1 << 13) + 1));
  CHECK(!refuses(1 << 6, 1 << 6));
}

TEST_CASE("a JPEG comes back nearly as it was written") {
  const Image image = gradient(61, 47);
  const Bytes bytes = encode_jpeg(image, 95);
  CHECK(is_image(bytes));
  const Image decoded = decode_image(bytes, "x");
  CHECK(decoded.width == 61);
  CHECK(decoded.height == 47);
  REQUIRE(decoded.pixels.size() == image.pixels.size());
  double difference = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    difference += std::abs(image.pixels[i] - decoded.pixels[i]);
  CHECK(difference / static_cast<double>(image.pixels.size()) < 2);
}

TEST_CASE("JPEG in grey, progressive, CMYK and YCCK becomes RGB") {
  const auto decoded = [](const Bytes& bytes) { return pixel_of(decode_image(bytes, "x"), 8, 8); };
  CHECK(near(decoded(plain_jpeg(JCS_GRAYSCALE, JCS_GRAYSCALE, {77})), {77, 77, 77}, 3));
  CHECK(near(decoded(plain_jpeg(JCS_RGB, JCS_YCbCr, {200, 100, 50}, true)), {200, 100, 50}, 4));
  CHECK(near(decoded(plain_jpeg(JCS_RGB, JCS_RGB, {200, 100, 50})), {200, 100, 50}, 4));
  // As in Pillow, 255 means no ink in all of these. libjpeg marks the first two as Adobe's.
  CHECK(near(decoded(plain_jpeg(JCS_CMYK, JCS_CMYK, {255, 128, 0, 255})), {255, 128, 0}, 4));
  CHECK(near(decoded(plain_jpeg(JCS_CMYK, JCS_YCCK, {255, 128, 0, 128})), {128, 64, 0}, 6));
  const auto without_marker = [&](const Bytes& inks) {
    return decoded(plain_jpeg(JCS_CMYK, JCS_CMYK, inks, false, false));
  };
  CHECK(near(without_marker({255, 255, 255, 255}), {255, 255, 255}, 0));
  CHECK(near(without_marker({255, 255, 255, 0}), {0, 0, 0}, 0));
  CHECK(near(without_marker({255, 128, 0, 128}), {128, 64, 0}, 4));
}

TEST_CASE("a JPEG that is cut off anywhere is refused by name") {
  for (const bool progressive : {false, true}) {
    const Bytes whole =
        progressive ? plain_jpeg(JCS_RGB, JCS_YCbCr, {200, 100, 50}, true) : encode_jpeg(gradient(40, 40));
    for (std::size_t size = 0; size < whole.size() - 2; ++size) {  // a missing end marker loses nothing
      CAPTURE(size);
      const auto cut = std::span(whole).first(size);
      CHECK(contains(user_error([&] { decode_image(cut, "a/b.jpg"); }), "a/b.jpg: "));
    }
  }
}

// If the file was decoded first, the error would be that it is cut off.
TEST_CASE("a JPEG of too many pixels is refused by its header") {
  constexpr std::uint8_t side = 0x30;  // the upper byte of 12,288 pixels
  for (const bool progressive : {false, true}) {
    Bytes bytes = plain_jpeg(JCS_GRAYSCALE, JCS_GRAYSCALE, {77}, progressive);
    const Bytes frame{0xff, static_cast<std::uint8_t>(progressive ? 0xc2 : 0xc0)};
    const auto found = std::ranges::search(bytes, frame).begin();
    REQUIRE(found != bytes.end());
    found[5] = side;  // height and width follow the marker, the length and the depth
    found[7] = side;
    CHECK(
        user_error([&] { decode_image(bytes, "b.jpg"); }) ==
        "b.jpg: the image cannot be decoded: 12304x12304 pixels is beyond the limit of 134217728; replace or "
        "remove the file");
  }
}

TEST_CASE("a JPEG with damage inside is refused") {
  Bytes bytes = encode_jpeg(gradient(64, 64));
  for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 40; ++i)
    bytes[i] = static_cast<std::uint8_t>(0xff);
  CHECK(contains(user_error([&] { decode_image(bytes, "b.jpg"); }), "b.jpg: the image cannot be decoded: "));
}

TEST_CASE("what is not an image is refused by name") {
  const std::string text = "GIF89a and so on";
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  CHECK_FALSE(is_image(bytes));
  CHECK(contains(user_error([&] { decode_image(bytes, "x.jpg"); }), "x.jpg: is neither JPEG nor PNG"));
  CHECK(contains(user_error([&] { decode_image(bytes, "x.jpg"); }), " by its content, but GIF; convert "));
  CHECK(contains(user_error([&] { decode_image({}, "x.jpg"); }), "x.jpg: is neither JPEG nor PNG"));
}

TEST_CASE("an image that JPEG or PNG cannot hold is refused") {
  CHECK(contains(user_error([] { encode_jpeg({}); }), "an image of 0x0 cannot be encoded as JPEG: Empty"));
  CHECK(contains(user_error([] { encode_png({}); }), "an image of 0x0 cannot be encoded as PNG: "));
}

}  // namespace plexaura::testing::image_test
