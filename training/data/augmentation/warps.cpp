#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <string>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

namespace {

// Pixel (x, y) of the result shows the point (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]) of the image.
// The centre of pixel (i, j) is the point (i + 0.5, j + 0.5).
using Matrix = std::array<double, 6>;

constexpr double radians(double degrees) { return degrees * (std::numbers::pi / 180); }

Image filled_like(const Image& image, Colour fill) {
  Image result{image.width, image.height, std::vector<std::uint8_t>(image.pixels.size())};
  for (std::size_t i = 0; i < result.pixels.size(); i += 3)
    std::ranges::copy(fill, result.pixels.begin() + static_cast<std::ptrdiff_t>(i));
  return result;
}

void copy_pixel(const Image& image, std::int64_t x, std::int64_t y, std::uint8_t* to) {
  if (x < 0 || x >= image.width || y < 0 || y >= image.height) return;
  std::copy_n(image.pixels.data() + (y * image.width + x) * 3, 3, to);
}

// Warps with the nearest pixel. Adds up steps in units of 2^-16, as Pillow does.
void warp_nearest(const Image& image, const Matrix& m, Image& result) {
  const auto fixed = [](double value) { return static_cast<std::int64_t>(std::floor(value * 65536 + 0.5)); };
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t y = 0; y < image.height; ++y, row_x += fixed(m[1]), row_y += fixed(m[4])) {
    std::int64_t from_x = row_x;
    std::int64_t from_y = row_y;
    for (std::int64_t x = 0; x < image.width; ++x, to += 3, from_x += fixed(m[0]), from_y += fixed(m[3]))
      copy_pixel(image, from_x >> 16, from_y >> 16, to);
  }
}

// Scales and moves with the nearest pixel. For this case Pillow adds up steps in float64.
void scale_nearest(const Image& image, const Matrix& m, Image& result) {
  const auto pixel_at = [](double place) { return place < 0 ? -1 : static_cast<std::int64_t>(place); };
  std::vector<std::int64_t> columns;
  double from_x = m[2] + m[0] * 0.5;
  for (std::int64_t x = 0; x < image.width; ++x, from_x += m[0]) columns.push_back(pixel_at(from_x));
  double from_y = m[5] + m[4] * 0.5;
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t y = 0; y < image.height; ++y, from_y += m[4])
    for (const std::int64_t column : columns) {
      copy_pixel(image, column, pixel_at(from_y), to);
      to += 3;
    }
}

void interpolate(const Image& image, double from_x, double from_y, std::uint8_t* to) {
  if (from_x < 0 || from_x >= static_cast<double>(image.width) || from_y < 0 ||
      from_y >= static_cast<double>(image.height))
    return;
  const double left = std::floor(from_x - 0.5);
  const double top = std::floor(from_y - 0.5);
  const double across = from_x - 0.5 - left;
  const double down = from_y - 0.5 - top;
  const auto x = static_cast<std::int64_t>(left);
  const auto y = static_cast<std::int64_t>(top);
  const std::int64_t x0 = std::max<std::int64_t>(x, 0);
  const std::int64_t x1 = std::min(x + 1, image.width - 1);
  const std::uint8_t* const upper = image.pixels.data() + std::max<std::int64_t>(y, 0) * image.width * 3;
  const std::uint8_t* const lower = image.pixels.data() + std::min(y + 1, image.height - 1) * image.width * 3;
  const auto between = [](double first, double second, double share) {
    return first + (second - first) * share;
  };
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    const double above = between(upper[x0 * 3 + channel], upper[x1 * 3 + channel], across);
    const double below = between(lower[x0 * 3 + channel], lower[x1 * 3 + channel], across);
    to[channel] = static_cast<std::uint8_t>(between(above, below, down));
  }
}

void warp_bilinear(const Image& image, const Matrix& m, Image& result) {
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x, to += 3) {
      const double centre_x = static_cast<double>(x) + 0.5;
      const double centre_y = static_cast<double>(y) + 0.5;
      interpolate(image, m[0] * centre_x + m[1] * centre_y + m[2], m[3] * centre_x + m[4] * centre_y + m[5],
                  to);
    }
}

Image warp(const Image& image, const Matrix& m, Interpolation interpolation, Colour fill) {
  Image result = filled_like(image, fill);
  if (interpolation == Interpolation::bilinear)
    warp_bilinear(image, m, result);
  else if (m[1] == 0 && m[3] == 0)
    scale_nearest(image, m, result);
  else
    warp_nearest(image, m, result);
  return result;
}

// Rotates a square image by 90 degrees counter-clockwise.
Image quarter_turn(const Image& image) {
  Image result{image.width, image.height, std::vector<std::uint8_t>(image.pixels.size())};
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x)
      copy_pixel(image, image.width - 1 - y, x, result.pixels.data() + (y * image.width + x) * 3);
  return result;
}

// Rounds the decimal value exactly, as Python's round(value, 15) does.
double rounded_to_15_digits(double value) {
  const std::string text = fmt::format("{:.15f}", value);
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

// Rotates. Pillow copies pixels for right angles, and rounds the matrix for other angles.
Image rotate(const Image& image, double degrees, Interpolation interpolation, Colour fill) {
  double angle = std::fmod(degrees, 360);
  if (angle < 0) angle += 360;
  const auto quarters = static_cast<int>(angle / 90);
  const bool is_right = angle == quarters * 90;
  if (is_right && (quarters % 2 == 0 || image.width == image.height)) {
    Image result = image;
    if (quarters == 2) {
      hflip(result);
      vflip(result);
    } else {
      for (int turn = 0; turn < quarters; ++turn) result = quarter_turn(result);
    }
    return result;
  }
  const double cosine = rounded_to_15_digits(std::cos(radians(angle)));
  const double sine = rounded_to_15_digits(std::sin(-radians(angle)));
  const double x = static_cast<double>(image.width) / 2;
  const double y = static_cast<double>(image.height) / 2;
  return warp(image, {cosine, sine, cosine * -x + sine * -y + x, -sine, cosine, -sine * -x + cosine * -y + y},
              interpolation, fill);
}

Image affine(const Image& image, const AffineOptions& options) {
  const double turn = radians(options.angle);
  const double shear_x = radians(options.shear[0]);
  const double shear_y = radians(options.shear[1]);
  const double a = std::cos(turn - shear_y) / std::cos(shear_y);
  const double b = -std::cos(turn - shear_y) * std::tan(shear_x) / std::cos(shear_y) - std::sin(turn);
  const double c = std::sin(turn - shear_y) / std::cos(shear_y);
  const double d = -std::sin(turn - shear_y) * std::tan(shear_x) / std::cos(shear_y) + std::cos(turn);
  const double x = options.around_corner ? 0 : static_cast<double>(image.width) * 0.5;
  const double y = options.around_corner ? 0 : static_cast<double>(image.height) * 0.5;
  const double moved_x = -x - static_cast<double>(options.translate[0]);
  const double moved_y = -y - static_cast<double>(options.translate[1]);
  Matrix m{d / options.scale, -b / options.scale, 0, -c / options.scale, a / options.scale, 0};
  m[2] += m[0] * moved_x + m[1] * moved_y;
  m[5] += m[3] * moved_x + m[4] * moved_y;
  m[2] += x;
  m[5] += y;
  return warp(image, m, options.interpolation, options.fill);
}

RandomRotation::RandomRotation(const Options& options) : options_(options) {
  checked_span(name(), "the range of angles", {0, options.degrees}, 0, 180);
}

void RandomRotation::apply(Image& image, Random& random) const {
  const double angle = random.uniform(-options_.degrees, options_.degrees);
  image = rotate(image, angle, options_.interpolation, options_.fill);
}

void RandomRotation::apply_to_mask(ClassMask& mask, Random& random) const {
  const double angle = random.uniform(-options_.degrees, options_.degrees);
  mask.classes =
      rotate(mask.classes, angle, Interpolation::nearest, {mask.outside, mask.outside, mask.outside});
}

RandomAffine::RandomAffine(const Options& options) : options_(options) {
  constexpr double least_scale = 0.01;
  constexpr double most_scale = 100;
  constexpr double most_shear = 89;
  checked_span(name(), "the range of angles", {0, options.degrees}, 0, 180);
  for (const double share : options.translate)
    if (!(share >= 0 && share <= 1))
      throw UserError(fmt::format(
          "affine: translate has {}; give shares from 0 to 1 of the width and of the height", share));
  checked_span(name(), "scale", options.scale, least_scale, most_scale);
  checked_span(name(), "shear along x", options.shear_x, -most_shear, most_shear);
  checked_span(name(), "shear along y", options.shear_y, -most_shear, most_shear);
}

Image RandomAffine::moved(const Image& image, Interpolation interpolation, Colour fill,
                          Random& random) const {
  const auto shift = [&](double share, std::int64_t pixels) {
    const double most = share * static_cast<double>(pixels);
    return static_cast<std::int64_t>(std::nearbyint(random.uniform(-most, most)));
  };
  AffineOptions options{.interpolation = interpolation, .fill = fill};
  options.angle = random.uniform(-options_.degrees, options_.degrees);
  options.translate[0] = shift(options_.translate[0], image.width);
  options.translate[1] = shift(options_.translate[1], image.height);
  options.scale = options_.scale.draw(random);
  options.shear[0] = options_.shear_x.draw(random);
  options.shear[1] = options_.shear_y.draw(random);
  return affine(image, options);
}

void RandomAffine::apply(Image& image, Random& random) const {
  image = moved(image, options_.interpolation, options_.fill, random);
}

void RandomAffine::apply_to_mask(ClassMask& mask, Random& random) const {
  mask.classes =
      moved(mask.classes, Interpolation::nearest, {mask.outside, mask.outside, mask.outside}, random);
}

}  // namespace plexaura::augmentation
