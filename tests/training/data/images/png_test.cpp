#include <array>
#include <doctest/doctest.h>
#include <functional>
#include <png.h>

#include "tests/support/error_text.h"
#include "tests/training/data/data_support.h"
#include "training/data/images/image.h"

namespace plexaura::testing::png_test {

namespace {

using Bytes = std::vector<std::uint8_t>;
using Settings = std::function<void(png_structp, png_infop)>;

constexpr int height = 2;

void append(png_structp png, png_bytep data, std::size_t count) {
  auto& all = *static_cast<Bytes*>(png_get_io_ptr(png));
  all.insert(all.end(), data, data + count);
}

// Makes a PNG of two equal rows with libpng's writer. `type` and `depth` are PNG's; `row` has the bytes of
// the file; `set` may add chunks.
Bytes make_png(int type, int depth, const Bytes& row, int width, const Settings& set = {},
               int interlace = PNG_INTERLACE_NONE) {
  Bytes bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &bytes, append, nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), height, depth, type, interlace,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (set) set(png, info);
  png_write_info(png, info);
  std::array<png_bytep, height> rows{};
  Bytes copy = row;
  rows.fill(copy.data());
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

// Returns the first row as R, G, B, R, G, B, ….
Bytes first_row(const Bytes& png) {
  const Image image = decode_image(png, "x.png");
  CHECK(image.height == height);
  return {image.pixels.begin(), image.pixels.begin() + image.width * 3};
}

void two_colours(png_structp png, png_infop info) {
  const std::array<png_color, 2> palette{{{1, 2, 3}, {9, 8, 7}}};
  png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
}

}  // namespace

// The expected values of the next four cases are those of Pillow 13.0, Image.open(...).convert("RGB").
TEST_CASE("every kind of PNG becomes RGB") {
  CHECK(first_row(make_png(PNG_COLOR_TYPE_RGB, 8, {1, 2, 3, 200, 100, 50}, 2)) ==
        Bytes{1, 2, 3, 200, 100, 50});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY, 8, {1, 77}, 2)) == Bytes{1, 1, 1, 77, 77, 77});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY, 1, {0x40}, 2)) == Bytes{0, 0, 0, 255, 255, 255});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY, 2, {0x1b}, 4)) ==
        Bytes{0, 0, 0, 85, 85, 85, 170, 170, 170, 255, 255, 255});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY, 4, {0x3c}, 2)) == Bytes{51, 51, 51, 204, 204, 204});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_PALETTE, 8, {0, 1}, 2, two_colours)) == Bytes{1, 2, 3, 9, 8, 7});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_PALETTE, 1, {0x40}, 2, two_colours)) == Bytes{1, 2, 3, 9, 8, 7});
}

TEST_CASE("of 16 bits the upper 8 are taken") {
  CHECK(first_row(make_png(PNG_COLOR_TYPE_RGB, 16, {1, 255, 2, 128, 3, 127, 200, 255, 100, 255, 50, 255},
                           2)) == Bytes{1, 2, 3, 200, 100, 50});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY_ALPHA, 16, {10, 255, 0, 0, 200, 255, 128, 0}, 2)) ==
        Bytes{10, 10, 10, 200, 200, 200});
  // Pillow clips these values to 255 instead, so that the image would be white.
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY, 16, {77, 255, 200, 0}, 2)) ==
        Bytes{77, 77, 77, 200, 200, 200});
}

TEST_CASE("transparency is dropped, and leaves colours as they are") {
  CHECK(first_row(make_png(PNG_COLOR_TYPE_RGB_ALPHA, 8, {10, 20, 30, 0, 200, 100, 50, 128}, 2)) ==
        Bytes{10, 20, 30, 200, 100, 50});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY_ALPHA, 8, {10, 0, 200, 128}, 2)) ==
        Bytes{10, 10, 10, 200, 200, 200});
  const Settings transparent_colour = [](png_structp png, png_infop info) {
    png_color_16 colour{};
    colour.red = 1;
    colour.green = 2;
    colour.blue = 3;
    colour.gray = 77;
    png_set_tRNS(png, info, nullptr, 0, &colour);
  };
  CHECK(first_row(make_png(PNG_COLOR_TYPE_RGB, 8, {1, 2, 3, 200, 100, 50}, 2, transparent_colour)) ==
        Bytes{1, 2, 3, 200, 100, 50});
  CHECK(first_row(make_png(PNG_COLOR_TYPE_GRAY, 8, {1, 77}, 2, transparent_colour)) ==
        Bytes{1, 1, 1, 77, 77, 77});
  const Settings transparent_palette = [](png_structp png, png_infop info) {
    two_colours(png, info);
    const std::array<png_byte, 2> alphas{0, 128};
    png_set_tRNS(png, info, alphas.data(), static_cast<int>(alphas.size()), nullptr);
  };
  CHECK(first_row(make_png(PNG_COLOR_TYPE_PALETTE, 8, {0, 1}, 2, transparent_palette)) ==
        Bytes{1, 2, 3, 9, 8, 7});
}

TEST_CASE("the gamma of a file changes no pixel") {
  const Settings linear = [](png_structp png, png_infop info) { png_set_gAMA(png, info, 1.0); };
  CHECK(first_row(make_png(PNG_COLOR_TYPE_RGB, 8, {1, 2, 3, 200, 100, 50}, 2, linear)) ==
        Bytes{1, 2, 3, 200, 100, 50});
}

TEST_CASE("an interlaced PNG has all its rows") {
  const Image image =
      decode_image(make_png(PNG_COLOR_TYPE_GRAY, 8, {1, 77, 5}, 3, {}, PNG_INTERLACE_ADAM7), "x.png");
  CHECK(image.pixels == Bytes{1, 1, 1, 77, 77, 77, 5, 5, 5, 1, 1, 1, 77, 77, 77, 5, 5, 5});
}

TEST_CASE("a PNG that is cut off in its data is refused by name") {
  const Bytes whole = make_png(PNG_COLOR_TYPE_RGB, 8, {1, 2, 3, 200, 100, 50}, 2);
  constexpr std::size_t end_chunk = 12;
  for (std::size_t size = 0; size < whole.size() - end_chunk - 4; ++size) {
    CAPTURE(size);
    const auto cut = std::span(whole).first(size);
    CHECK(user_error([&] { decode_image(cut, "b.png"); }).starts_with("b.png: "));
  }
}

TEST_CASE("an image that was encoded is decoded to the same pixels") {
  Image image{3, 2, {}};
  for (int i = 0; i < 3 * 2 * 3; ++i) image.pixels.push_back(static_cast<std::uint8_t>(255 - 14 * i));
  const Image decoded = decode_image(encode_png(image), "x.png");
  CHECK(decoded.width == 3);
  CHECK(decoded.height == 2);
  CHECK(decoded.pixels == image.pixels);
}

TEST_CASE("a mask of classes has the numbers in the file, and other kinds of PNG are refused") {
  const auto numbers = [](const Bytes& png) {
    const Image image = decode_class_mask(png, "x.png");
    Bytes found;
    for (std::int64_t x = 0; x < image.width; ++x)
      found.push_back(image.pixels[static_cast<std::size_t>(3 * x)]);
    return found;
  };
  CHECK(numbers(make_png(PNG_COLOR_TYPE_GRAY, 8, {1, 77}, 2)) == Bytes{1, 77});
  CHECK(numbers(make_png(PNG_COLOR_TYPE_GRAY, 8, {1, 77}, 2, {}, PNG_INTERLACE_ADAM7)) == Bytes{1, 77});
  CHECK(numbers(make_png(PNG_COLOR_TYPE_GRAY, 1, {0x40}, 2)) == Bytes{0, 1});
  CHECK(numbers(make_png(PNG_COLOR_TYPE_GRAY, 2, {0x1b}, 4)) == Bytes{0, 1, 2, 3});
  CHECK(numbers(make_png(PNG_COLOR_TYPE_PALETTE, 8, {0, 1}, 2, two_colours)) == Bytes{0, 1});
  CHECK(numbers(make_png(PNG_COLOR_TYPE_PALETTE, 1, {0x40}, 2, two_colours)) == Bytes{0, 1});
  CHECK(numbers(encode_grey_png(2, 1, Bytes{3, 255})) == Bytes{3, 255});
  const auto refusal = [&](const Bytes& png) { return user_error([&] { decode_class_mask(png, "x.png"); }); };
  const std::string rule =
      "; give a PNG file whose grey values of at most 8 bits, or whose indices of a palette, are the numbers "
      "of the classes";
  CHECK(refusal(make_png(PNG_COLOR_TYPE_GRAY, 16, {0, 1, 0, 2}, 2)) ==
        "x.png: the mask cannot be read: its numbers have 16 bits" + rule);
  const std::string colours =
      "x.png: the mask cannot be read: its pixels are colours or transparent, and not numbers of classes" +
      rule;
  CHECK(refusal(make_png(PNG_COLOR_TYPE_RGB, 8, {1, 2, 3, 4, 5, 6}, 2)) == colours);
  CHECK(refusal(make_png(PNG_COLOR_TYPE_GRAY_ALPHA, 8, {1, 255, 2, 255}, 2)) == colours);
  CHECK(refusal({1, 2, 3}) == "x.png: the mask cannot be read: it is no PNG file" + rule);
  Bytes cut = encode_grey_png(2, 1, Bytes{3, 255});
  cut.resize(cut.size() - 20);
  CHECK(refusal(cut).starts_with("x.png: the mask cannot be read: "));
}

}  // namespace plexaura::testing::png_test
