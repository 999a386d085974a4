#include "training/data/images/resample.h"

#include <array>
#include <doctest/doctest.h>
#include <vector>

namespace plexaura::testing::resample_test {

namespace {

// Channel c of pixel (x, y) is 7 x^2 + 5 y^2 + 31 c x + 11 y, modulo 256.
Image pattern(std::int64_t width, std::int64_t height) {
  Image image{width, height, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t channel = 0; channel < 3; ++channel)
        image.pixels.push_back(
            static_cast<std::uint8_t>((7 * x * x + 5 * y * y + 31 * channel * x + 11 * y) % 256));
  return image;
}

using Bytes = std::vector<std::uint8_t>;

Bytes sample_of(const Image& image, const Crop& crop) {
  Bytes planes(static_cast<std::size_t>(3 * crop.window.width * crop.window.height));
  resample(image, crop, planes);
  return planes;
}

Bytes resized(const Image& image, ImageSize size) {
  return sample_of(image, {{0, 0, image.width, image.height}, size, {0, 0, size.width, size.height}});
}

}  // namespace

// The expected values of the next three cases were computed by torchvision 0.29.2 with Pillow 13.0 and
// InterpolationMode.BILINEAR from pattern() of the same size.
TEST_CASE("resize gives the values of torchvision's to the bit, shrinking and growing") {
  CHECK(resized(pattern(9, 7), {4, 3}) == Bytes{25, 79,  145, 142, 92,  141, 151, 117, 182, 142, 129, 118,  //
                                                50, 149, 143, 141, 114, 140, 118, 105, 146, 111, 155, 131,  //
                                                76, 123, 144, 108, 128, 124, 124, 144, 161, 137, 135, 148});
  CHECK(resized(pattern(3, 2), {4, 5}) ==
        Bytes{0, 4,  15,  28,  2, 6,  17,  30,  8, 12, 23,  36,  14, 18, 29,  42,  16, 20, 31,  44,
              0, 24, 58,  90,  2, 26, 60,  92,  8, 32, 66,  98,  14, 38, 72,  104, 16, 40, 74,  106,
              0, 43, 100, 152, 2, 45, 102, 154, 8, 51, 108, 160, 14, 57, 114, 166, 16, 59, 116, 168});
}

TEST_CASE("Resize(6) and CenterCrop(3) give the values of torchvision's, margins odd or even") {
  CHECK(sample_of(pattern(13, 10), centre_crop({13, 10}, 6, 3)) ==
        Bytes{171, 128, 109, 111, 143, 117, 143, 145, 102,  //
              125, 105, 101, 161, 143, 117, 129, 163, 162,  //
              141, 151, 139, 129, 135, 135, 111, 120, 168});
  CHECK(sample_of(pattern(10, 13), centre_crop({10, 13}, 6, 3)) ==
        Bytes{170, 120, 122, 117, 165, 112, 116, 134, 150,  //
              113, 138, 125, 155, 150, 134, 130, 155, 145,  //
              139, 135, 138, 136, 132, 169, 102, 98,  106});
}

TEST_CASE("resized_crop and hflip give the values of torchvision's: no pixel beyond the part has a say") {
  CHECK(sample_of(pattern(13, 10), {{3, 2, 7, 5}, {3, 3}, {0, 0, 3, 3}, true}) ==
        Bytes{131, 129, 165, 125, 126, 167, 122, 145, 109,  //
              127, 119, 120, 113, 119, 118, 102, 142, 158,  //
              170, 115, 93,  134, 146, 138, 130, 141, 145});
}

TEST_CASE("resampling to the same size changes nothing, and flips it if asked") {
  const Image image = pattern(5, 3);
  const Crop crop{{0, 0, 5, 3}, {5, 3}, {0, 0, 5, 3}};
  Crop flipping = crop;
  flipping.horizontal_flip = true;
  const Bytes planes = sample_of(image, crop);
  const Bytes flipped = sample_of(image, flipping);
  for (std::size_t y = 0; y < 3; ++y)
    for (std::size_t x = 0; x < 5; ++x)
      for (std::size_t channel = 0; channel < 3; ++channel) {
        CHECK(planes[(channel * 3 + y) * 5 + x] == image.pixels[(y * 5 + x) * 3 + channel]);
        CHECK(flipped[(channel * 3 + y) * 5 + 4 - x] == planes[(channel * 3 + y) * 5 + x]);
      }
}

TEST_CASE("a window is that part of the whole") {
  const Image image = pattern(40, 30);
  const Bytes whole = resized(image, {17, 13});
  const Bytes part = sample_of(image, {{0, 0, 40, 30}, {17, 13}, {5, 2, 4, 6}});
  for (std::size_t channel = 0; channel < 3; ++channel)
    for (std::size_t y = 0; y < 6; ++y)
      for (std::size_t x = 0; x < 4; ++x)
        CHECK(part[(channel * 6 + y) * 4 + x] == whole[(channel * 13 + y + 2) * 17 + x + 5]);
}

TEST_CASE("white stays white however many pixels become one") {
  const Image image{60000, 1, std::vector<std::uint8_t>(180000, 255)};
  for (const std::uint8_t value : resized(image, {7, 2})) CHECK(value == 255);
}

// The values are those of Image.resize((4, 3), NEAREST, box=(1, 1, 6, 5)) of Pillow.
TEST_CASE("without interpolation a pixel has the values of the nearest one") {
  Image image{7, 5, {}};
  for (int i = 0; i < 35; ++i) image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(i));
  Crop crop{{1, 1, 5, 4}, {4, 3}, {0, 0, 4, 3}};
  const auto first_channel = [&] {
    const Image result = resample_nearest(image, crop);
    Bytes values;
    for (std::size_t i = 0; i < result.pixels.size(); i += 3) values.push_back(result.pixels[i]);
    return values;
  };
  CHECK(first_channel() == Bytes{8, 9, 11, 12, 22, 23, 25, 26, 29, 30, 32, 33});
  crop.horizontal_flip = true;
  crop.window = {1, 1, 2, 2};
  CHECK(first_channel() == Bytes{25, 23, 32, 30});
}

}  // namespace plexaura::testing::resample_test
