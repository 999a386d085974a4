// Applies changes of images that standard input lists, and writes the results to standard output. See
// dev/compare_augmentation.

#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "training/data/augmentation/functional.h"
#include "training/data/augmentation/policies.h"
#include "training/data/images/resample.h"

namespace plexaura::augmentation {

namespace {

using Arguments = std::istringstream;

template <class T>
T next(Arguments& arguments) {
  T value{};
  if (!(arguments >> value)) throw UserError("run_augmentation: an argument is missing");
  return value;
}

double number(Arguments& arguments) { return next<double>(arguments); }
Interpolation interpolation(Arguments& arguments) {
  return next<std::string>(arguments) == "bilinear" ? Interpolation::bilinear : Interpolation::nearest;
}
Colour colour(Arguments& arguments) {
  Colour found{};
  for (std::uint8_t& value : found) value = static_cast<std::uint8_t>(next<int>(arguments));
  return found;
}

void affine_by(Image& image, Arguments& a) {
  AffineOptions options;
  options.angle = number(a);
  for (std::int64_t& pixels : options.translate) pixels = next<std::int64_t>(a);
  options.scale = number(a);
  for (double& degrees : options.shear) degrees = number(a);
  options.interpolation = interpolation(a);
  options.fill = colour(a);
  image = affine(image, options);
}

void resized_crop_by(Image& image, Arguments& a) {
  const Box box{next<std::int64_t>(a), next<std::int64_t>(a), next<std::int64_t>(a), next<std::int64_t>(a)};
  const auto side = next<std::int64_t>(a);
  image = resample(image, {.source = box, .scaled = {side, side}, .window = {0, 0, side, side}});
}

const std::map<std::string, std::function<void(Image&, Arguments&)>> operations{
    {"hflip", [](Image& image, Arguments&) { hflip(image); }},
    {"vflip", [](Image& image, Arguments&) { vflip(image); }},
    {"resized_crop", resized_crop_by},
    {"rotate",
     [](Image& image, Arguments& a) {
       const double degrees = number(a);
       const Interpolation between = interpolation(a);
       image = rotate(image, degrees, between, colour(a));
     }},
    {"affine", affine_by},
    {"adjust_brightness", [](Image& image, Arguments& a) { adjust_brightness(image, number(a)); }},
    {"adjust_contrast", [](Image& image, Arguments& a) { adjust_contrast(image, number(a)); }},
    {"adjust_saturation", [](Image& image, Arguments& a) { adjust_saturation(image, number(a)); }},
    {"adjust_sharpness", [](Image& image, Arguments& a) { adjust_sharpness(image, number(a)); }},
    {"adjust_hue", [](Image& image, Arguments& a) { adjust_hue(image, number(a)); }},
    {"rgb_to_grayscale", [](Image& image, Arguments&) { rgb_to_grayscale(image); }},
    {"gaussian_blur",
     [](Image& image, Arguments& a) {
       const auto size = next<std::int64_t>(a);
       gaussian_blur(image, size, number(a));
     }},
    {"posterize", [](Image& image, Arguments& a) { posterize(image, next<int>(a)); }},
    {"solarize", [](Image& image, Arguments& a) { solarize(image, number(a)); }},
    {"autocontrast", [](Image& image, Arguments&) { autocontrast(image); }},
    {"equalize", [](Image& image, Arguments&) { equalize(image); }},
    {"policy",
     [](Image& image, Arguments& a) {
       const auto name = next<std::string>(a);
       const double magnitude = number(a);
       const Interpolation between = interpolation(a);
       apply_policy(image, name, magnitude, between, colour(a));
     }},
};

// Computes the change on a line. The image, whose width and height are on the line, follows the line.
void run_line(const std::string& line) {
  std::istringstream arguments(line);
  Image image{next<std::int64_t>(arguments), next<std::int64_t>(arguments), {}};
  image.pixels.resize(static_cast<std::size_t>(image.width * image.height * 3));
  std::cin.read(reinterpret_cast<char*>(image.pixels.data()), std::ssize(image.pixels));
  operations.at(next<std::string>(arguments))(image, arguments);
  std::cout.write(reinterpret_cast<const char*>(image.pixels.data()), std::ssize(image.pixels));
}

}  // namespace

}  // namespace plexaura::augmentation

int main() {
  try {
    std::string line;
    while (std::getline(std::cin, line)) plexaura::augmentation::run_line(line);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
