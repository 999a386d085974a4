#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "training/data/images/crop.h"
#include "training/data/images/image.h"

// The changes of an image that torchvision.transforms.functional makes of a Pillow image in RGB, under the same names and
// with the same values. The functions do not check their arguments, unless a comment says so. Thread-safe.
namespace plexaura::augmentation {

enum class Interpolation : std::uint8_t { nearest, bilinear };

// A colour in RGB.
using Colour = std::array<std::uint8_t, 3>;

void hflip(Image& image);
void vflip(Image& image);

// Rotates around the centre, counter-clockwise, and keeps the size. `fill` is the colour outside the image.
Image rotate(const Image& image, double degrees, Interpolation interpolation, Colour fill);

// The parameters of affine().
struct AffineOptions {
  double angle = 0;  // rotation in degrees, clockwise
  // Shift in pixels to the right and down, applied after the rotation.
  std::array<std::int64_t, 2> translate{};
  double scale = 1;               // above 0
  std::array<double, 2> shear{};  // angles in degrees, along x and y
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};               // the colour outside the image
  bool around_corner = false;  // true: the upper left corner stays fixed, instead of the centre
};
Image affine(const Image& image, const AffineOptions& options);

// Each of these functions multiplies one quantity by `factor`, which is 0 or more. A factor of 1 changes
// nothing.
void adjust_brightness(Image& image, double factor);  // multiplies the values
// Multiplies the distance of the values from the mean of the grey image.
void adjust_contrast(Image& image, double factor);
// Multiplies the distance of a pixel from its grey value.
void adjust_saturation(Image& image, double factor);
void adjust_sharpness(Image& image, double factor);  // multiplies the distance from the smoothed image

// Turns the hue by `shift` of the colour circle, from -0.5 to 0.5.
void adjust_hue(Image& image, double shift);

// Replaces each pixel by its luma (ITU-R 601), as a colour.
void rgb_to_grayscale(Image& image);

// Convolves with a kernel of `size` pixels, which is odd, along both axes, after mirroring the image at its
// edges. Both sides of the image have more than size / 2 pixels. The sums are computed in float32 and rounded
// once. torchvision adds in another order, so a value may differ from its result by 1.
void gaussian_blur(Image& image, std::int64_t size, double sigma);

// Writes a colour into a part of the image.
void erase(Image& image, const Box& box, Colour colour);

// Keeps the upper `bits` bits of each value, from 1 to 8.
void posterize(Image& image, int bits);
// Inverts the values that are not below the threshold, which is from 0 to 255.
void solarize(Image& image, double threshold);
// Stretches the values of each channel so that they go from 0 to 255.
void autocontrast(Image& image);
// Makes the values of each channel as evenly frequent as possible.
void equalize(Image& image);

// Replaces each value v of channel c by tables[c][v].
using ValueTable = std::array<std::uint8_t, 256>;
void map_values(Image& image, std::span<const ValueTable, 3> tables);
void map_values(Image& image, const ValueTable& table);

// Returns the luma of a pixel.
inline std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// Returns from + factor * (to - from), truncated and limited to a byte, as Pillow computes it.
inline std::uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(value <= 0 ? 0.0F : value >= 255 ? 255.0F : value);
}

}  // namespace plexaura::augmentation
