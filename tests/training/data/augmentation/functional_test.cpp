#include "training/data/augmentation/functional.h"

#include <doctest/doctest.h>
#include <functional>
#include <string>
#include <vector>

#include "training/data/augmentation/policies.h"

namespace plexaura::augmentation::testing::functional_test {

namespace {

constexpr Interpolation nearest = Interpolation::nearest;
constexpr Interpolation bilinear = Interpolation::bilinear;
constexpr Colour fill{9, 100, 200};

// Channel c of pixel (x, y) is 7 x^2 + 5 y^2 + 31 c x + 11 y + 40 c y, modulo 256.
Image pattern() {
  Image image{5, 4, {}};
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 5; ++x)
      for (int c = 0; c < 3; ++c)
        image.pixels.push_back(
            static_cast<std::uint8_t>((7 * x * x + 5 * y * y + 31 * c * x + 11 * y + 40 * c * y) % 256));
  return image;
}

struct Change {
  std::string name;
  std::function<void(Image&)> apply;
  std::vector<std::uint8_t> expected;
};

// The expected values were computed by torchvision 0.29.2 with Pillow 13.0 from pattern().
const std::vector<Change>& changes() {
  static const std::vector<Change> all{
      {R"(hflip(image))",
       [](Image& image) { hflip(image); },
       {112, 236, 104, 63,  156, 249, 28,  90,  152, 7,  38,  69,  0,  0,   0,  128, 36,  200, 79,  212,
        89,  44,  146, 248, 23,  94,  165, 16,  56,  96, 154, 102, 50, 105, 22, 195, 70,  212, 98,  49,
        160, 15,  42,  122, 202, 190, 178, 166, 141, 98, 55,  106, 32, 214, 85, 236, 131, 78,  198, 62}},
      {R"(vflip(image))",
       [](Image& image) { vflip(image); },
       {78,  198, 62,  85, 236, 131, 106, 32,  214, 141, 98, 55, 190, 178, 166, 42,  122, 202, 49,  160,
        15,  70,  212, 98, 105, 22,  195, 154, 102, 50,  16, 56, 96,  23,  94,  165, 44,  146, 248, 79,
        212, 89,  128, 36, 200, 0,   0,   0,   7,   38,  69, 28, 90,  152, 63,  156, 249, 112, 236, 104}},
      {R"(image = rotate(image, 30, nearest, fill))",
       [](Image& image) { image = rotate(image, 30, nearest, fill); },
       {9,   100, 200, 28,  90,  152, 63,  156, 249, 128, 36,  200, 128, 36,  200, 7,   38,  69,  23,  94,
        165, 44,  146, 248, 105, 22,  195, 154, 102, 50,  16,  56,  96,  23,  94,  165, 70,  212, 98,  105,
        22,  195, 141, 98,  55,  42,  122, 202, 42,  122, 202, 85,  236, 131, 106, 32,  214, 9,   100, 200}},
      {R"(image = rotate(image, -50.5, bilinear, fill))",
       [](Image& image) { image = rotate(image, -50.5, bilinear, fill); },
       {45,  128, 189, 25,  84,  127, 14,  62,  110, 17,  62,  108, 9,   100, 200, 70,  190, 100, 47,  156,
        25,  40,  137, 188, 43,  129, 189, 59,  148, 237, 87,  212, 140, 85,  130, 145, 78,  144, 144, 81,
        199, 96,  99,  177, 155, 9,   100, 200, 124, 66,  131, 129, 69,  126, 135, 81,  110, 126, 53,  191}},
      {R"(image = affine(image, {.angle = 20, .translate = {1, -1}, .scale = 1.2, .shear = {10, -5}, .fill = fill}))",
       [](Image& image) {
         image = affine(image,
                        {.angle = 20, .translate = {1, -1}, .scale = 1.2, .shear = {10, -5}, .fill = fill});
       },
       {42,  122, 202, 42, 122, 202, 23,  94,  165, 44,  146, 248, 79,  212, 89,  78,  198, 62,  85,  236,
        131, 49,  160, 15, 70,  212, 98,  105, 22,  195, 9,   100, 200, 85,  236, 131, 106, 32,  214, 141,
        98,  55,  105, 22, 195, 9,   100, 200, 9,   100, 200, 9,   100, 200, 141, 98,  55,  190, 178, 166}},
      {R"(image = affine(image, {.translate = {1, 0}, .scale = 0.7, .fill = fill}))",
       [](Image& image) {
         image = affine(image, {.translate = {1, 0}, .scale = 0.7, .fill = fill});
       },
       {9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100,
        200, 23,  94,  165, 44,  146, 248, 79,  212, 89,  9,   100, 200, 9,   100, 200, 49,  160, 15,  70,
        212, 98,  105, 22,  195, 9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200}},
      {R"(image = affine(image, {.angle = 20, .scale = 0.8, .shear = {10, 0}, .interpolation = bilinear, .fill = fill}))",
       [](Image& image) {
         image = affine(
             image, {.angle = 20, .scale = 0.8, .shear = {10, 0}, .interpolation = bilinear, .fill = fill});
       },
       {9,   100, 200, 2,   9,   15,  8,   40,  72,  9,   100, 200, 9,  100, 200, 9,   100, 200, 28,  100,
        121, 35,  124, 213, 63,  168, 177, 107, 216, 125, 76,  198, 76, 72,  181, 92,  84,  143, 131, 116,
        83,  134, 9,   100, 200, 9,   100, 200, 9,   100, 200, 139, 94, 62,  184, 165, 146, 9,   100, 200}},
      {R"(adjust_brightness(image, 1.3))",
       [](Image& image) { adjust_brightness(image, 1.3); },
       {0,   0,   0,   9,   49,  89,  36,  116, 197, 81,  202, 255, 145, 255, 135, 20,  72, 124, 29,  122,
        214, 57,  189, 255, 102, 255, 115, 166, 46,  255, 54,  158, 255, 63,  208, 19,  91, 255, 127, 136,
        28,  253, 200, 132, 65,  101, 255, 80,  110, 255, 170, 137, 41,  255, 183, 127, 71, 246, 231, 215}},
      {R"(adjust_contrast(image, 0.6))",
       [](Image& image) { adjust_contrast(image, 0.6); },
       {43,  43,  43,  47,  66, 85,  60,  97,  134, 81,  137, 193, 110, 185, 106, 53,  77, 101, 57,  100,
        142, 70,  131, 192, 91, 170, 97,  120, 65,  163, 68,  116, 164, 73,  139, 52,  85, 170, 102, 106,
        56,  160, 136, 104, 73, 90,  162, 80,  94,  185, 122, 107, 62,  172, 128, 102, 76, 157, 150, 143}},
      {R"(adjust_saturation(image, 1.7))",
       [](Image& image) { adjust_saturation(image, 1.7); },
       {0,   0,   0,   0,   42, 94,  0,   97,  203, 9,   167, 255, 61,  255, 48,  0,  60, 128, 0,   103,
        223, 0,   159, 255, 23, 249, 40,  160, 3,   255, 0,   132, 255, 6,   195, 0,  9,  250, 56,  131,
        0,   255, 183, 95,  6,  29,  233, 2,   19,  255, 97,  127, 1,   255, 165, 92, 19, 197, 176, 156}},
      {R"(adjust_sharpness(image, 2.5))",
       [](Image& image) { adjust_sharpness(image, 2.5); },
       {0,   0,   0,   7,   38, 69,  28,  90,  152, 63,  156, 249, 112, 236, 104, 16, 56, 96,  14,  85,
        216, 35,  167, 255, 70, 255, 21,  128, 36,  200, 42,  122, 202, 40,  181, 0,  61, 255, 60,  96,
        0,   246, 154, 102, 50, 78,  198, 62,  85,  236, 131, 106, 32,  214, 141, 98, 55, 190, 178, 166}},
      {R"(adjust_hue(image, -0.3))",
       [](Image& image) { adjust_hue(image, -0.3); },
       {0,   0,   0,   26, 69,  7,   66, 152, 28,  120, 249, 63,  236, 123, 105, 41, 96,  16,  67,  165,
        23,  107, 248, 45, 212, 117, 80, 36,  200, 160, 91,  202, 43,  160, 15,  15, 212, 127, 71,  22,
        195, 140, 126, 50, 154, 198, 75, 62,  236, 160, 85,  33,  214, 144, 118, 55, 141, 184, 166, 190}},
      {R"(rgb_to_grayscale(image))",
       [](Image& image) { rgb_to_grayscale(image); },
       {0,  0,   0,   32,  32,  32,  79,  79,  79,  139, 139, 139, 184, 184, 184, 49,  49,  49,  81,  81,
        81, 127, 127, 127, 158, 158, 158, 82,  82,  82,  107, 107, 107, 110, 110, 110, 157, 157, 157, 67,
        67, 67,  112, 112, 112, 147, 147, 147, 179, 179, 179, 75,  75,  75,  106, 106, 106, 180, 180, 180}},
      {R"(gaussian_blur(image, 5, 1.1))",
       [](Image& image) { gaussian_blur(image, 5, 1.1); },
       {21,  76,  108, 28,  92,  124, 49,  122, 153, 76,  140, 161, 90,  144, 160, 30,  97,  112, 37,  108,
        125, 58,  126, 147, 85,  132, 153, 99,  131, 151, 49,  138, 112, 56,  138, 119, 77,  130, 133, 104,
        116, 137, 118, 110, 135, 59,  159, 112, 66,  152, 117, 87,  131, 128, 114, 109, 130, 128, 102, 128}},
      {R"(posterize(image, 3))",
       [](Image& image) { posterize(image, 3); },
       {0,   0,   0,   0,   32, 64,  0,   64,  128, 32,  128, 224, 96,  224, 96,  0,  32, 96,  0,   64,
        160, 32,  128, 224, 64, 192, 64,  128, 32,  192, 32,  96,  192, 32,  160, 0,  64, 192, 96,  96,
        0,   192, 128, 96,  32, 64,  192, 32,  64,  224, 128, 96,  32,  192, 128, 96, 32, 160, 160, 160}},
      {R"(solarize(image, 100))",
       [](Image& image) { solarize(image, 100); },
       {0,  0,  0,   7,   38, 69, 28, 90,  103, 63, 99,  6,   143, 19, 151, 16, 56, 96, 23, 94,
        90, 44, 109, 7,   79, 43, 89, 127, 36,  55, 42,  133, 53,  49, 95,  15, 70, 43, 98, 150,
        22, 60, 101, 153, 50, 78, 57, 62,  85,  19, 124, 149, 32,  41, 114, 98, 55, 65, 77, 89}},
      {R"(autocontrast(image))",
       [](Image& image) { autocontrast(image); },
       {0,   0,   0,   9,   41,  70,  37,  97,  155, 84,  168, 255, 150, 255, 106, 21,  60, 98,  30,  101,
        168, 59,  157, 253, 106, 229, 91,  171, 38,  204, 56,  131, 206, 65,  172, 15,  93, 229, 100, 140,
        23,  199, 206, 110, 51,  104, 213, 63,  114, 255, 134, 142, 34,  219, 189, 105, 56, 255, 192, 170}},
      {R"(apply_policy(image, "ShearX", -0.6, nearest, fill))",
       [](Image& image) { apply_policy(image, "ShearX", -0.6, nearest, fill); },
       {0,   0,  0,  7,   38, 69,  28,  90,  152, 63,  156, 249, 112, 236, 104, 9,   100, 200, 16,  56,
        96,  23, 94, 165, 44, 146, 248, 79,  212, 89,  9,   100, 200, 9,   100, 200, 42,  122, 202, 49,
        160, 15, 70, 212, 98, 9,   100, 200, 9,   100, 200, 78,  198, 62,  85,  236, 131, 106, 32,  214}},
      {R"(apply_policy(image, "TranslateY", 1.9, nearest, fill))",
       [](Image& image) { apply_policy(image, "TranslateY", 1.9, nearest, fill); },
       {9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200, 9,   100, 200, 0,   0,   0,   7,   38,
        69,  28,  90,  152, 63,  156, 249, 112, 236, 104, 16,  56,  96,  23,  94,  165, 44,  146, 248, 79,
        212, 89,  128, 36,  200, 42,  122, 202, 49,  160, 15,  70,  212, 98,  105, 22,  195, 154, 102, 50}},
  };
  return all;
}

}  // namespace

TEST_CASE("changes of images have torchvision's values") {
  for (const Change& change : changes()) {
    CAPTURE(change.name);
    Image image = pattern();
    change.apply(image);
    CHECK(image.width == 5);
    CHECK(image.height == 4);
    CHECK(image.pixels == change.expected);
  }
}

// pattern() has too few pixels: torchvision, too, leaves it as it is.
TEST_CASE("equalize has torchvision's values") {
  Image image{32, 32, {}};
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x)
      for (int c = 0; c < 3; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>((x * x + y * 7) % 60 + c * 50));
  equalize(image);
  const auto row = image.pixels.begin() + 3 * 32 * 9;
  CHECK(std::vector<std::uint8_t>(row, row + 30) ==
        std::vector<std::uint8_t>{15,  15,  15,  23,  23,  23,  40,  40,  40,  69, 69, 69, 109, 109, 109,
                                  161, 161, 161, 225, 225, 225, 255, 255, 255, 40, 40, 40, 136, 136, 136});
  Image few = pattern();
  equalize(few);
  CHECK(few.pixels == pattern().pixels);
}

TEST_CASE("right angles copy pixels, and quarter turns only those of a square") {
  const Image image = pattern();
  Image turned = image;
  hflip(turned);
  vflip(turned);
  CHECK(rotate(image, 180, bilinear, fill).pixels == turned.pixels);
  CHECK(rotate(image, -360, bilinear, fill).pixels == image.pixels);
  const Image square{2, 2, {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}};
  CHECK(rotate(square, 90, nearest, fill).pixels ==
        std::vector<std::uint8_t>{2, 2, 2, 4, 4, 4, 1, 1, 1, 3, 3, 3});
  CHECK(rotate(square, -90, nearest, fill).pixels ==
        std::vector<std::uint8_t>{3, 3, 3, 1, 1, 1, 4, 4, 4, 2, 2, 2});
}

TEST_CASE("erase writes into its box only") {
  Image image = pattern();
  erase(image, {1, 2, 3, 1}, fill);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    const bool is_inside = i >= 11 * 3 && i < 14 * 3;
    CHECK(image.pixels[i] == (is_inside ? fill[i % 3] : pattern().pixels[i]));
  }
}

}  // namespace plexaura::augmentation::testing::functional_test
