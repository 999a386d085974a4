#include <algorithm>
#include <array>
#include <cmath>

#include "training/data/augmentation/functional.h"

namespace plexaura::augmentation {

namespace {

std::uint8_t limited(float value) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(value), 0, 255));
}

// Hue, saturation and value, each from 0 to 255, as Pillow's mode HSV has them.
struct Hsv {
  std::uint8_t hue = 0;
  std::uint8_t saturation = 0;
  std::uint8_t value = 0;
};

// Converts a colour. Pillow computes some steps in float32 and others in float64, which decides how values
// are truncated.
Hsv to_hsv(const std::uint8_t* rgb) {
  const auto [least, most] = std::minmax({rgb[0], rgb[1], rgb[2]});
  if (least == most) return {.value = most};
  const auto range = static_cast<float>(most - least);
  const float red = static_cast<float>(most - rgb[0]) / range;
  const float green = static_cast<float>(most - rgb[1]) / range;
  const float blue = static_cast<float>(most - rgb[2]) / range;
  const float hue = rgb[0] == most   ? blue - green
                    : rgb[1] == most ? static_cast<float>(2.0 + red - blue)
                                     : static_cast<float>(4.0 + green - red);
  const double turns = hue / 6.0 + 1.0;
  const auto circle = static_cast<float>(turns >= 1 ? turns - 1 : turns);
  return {limited(static_cast<float>(circle * 255.0)),
          limited(static_cast<float>(range / static_cast<float>(most) * 255.0)), most};
}

void from_hsv(const Hsv& hsv, std::uint8_t* rgb) {
  if (hsv.saturation == 0) {
    std::fill_n(rgb, 3, hsv.value);
    return;
  }
  const double sixths = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const auto sector = static_cast<int>(sixths);
  const auto rest = static_cast<float>(sixths - sector);
  const auto saturation = static_cast<float>(hsv.saturation / 255.0);
  const auto scaled = [&](double share) {
    return limited(static_cast<float>(std::round(hsv.value * share)));
  };
  const std::uint8_t low = scaled(1.0 - saturation);
  const std::uint8_t falling = scaled(1.0 - saturation * rest);
  const std::uint8_t rising = scaled(1.0 - saturation * (1.0 - rest));
  const std::uint8_t high = hsv.value;
  const std::array<std::array<std::uint8_t, 3>, 6> colours{{{high, rising, low},
                                                            {falling, high, low},
                                                            {low, high, rising},
                                                            {low, falling, high},
                                                            {rising, low, high},
                                                            {high, low, falling}}};
  std::ranges::copy(colours.at(static_cast<std::size_t>(sector % 6)), rgb);
}

}  // namespace

void adjust_hue(Image& image, double shift) {
  const auto turn = static_cast<std::uint8_t>(static_cast<int>(shift * 255));
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    std::uint8_t* const rgb = image.pixels.data() + i;
    Hsv hsv = to_hsv(rgb);
    hsv.hue = static_cast<std::uint8_t>(hsv.hue + turn);
    from_hsv(hsv, rgb);
  }
}

}  // namespace plexaura::augmentation
