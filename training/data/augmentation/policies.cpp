#include "training/data/augmentation/policies.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::augmentation {

namespace {

struct Pixels {
  Interpolation interpolation = Interpolation::nearest;
  Colour fill{};
};

void shear(Image& image, double along_x, double along_y, const Pixels& pixels) {
  const auto degrees = [](double magnitude) { return std::atan(magnitude) * (180 / std::numbers::pi); };
  image = affine(image, {.shear = {degrees(along_x), degrees(along_y)},
                         .interpolation = pixels.interpolation,
                         .fill = pixels.fill,
                         .around_corner = true});
}

void translate(Image& image, double across, double down, const Pixels& pixels) {
  image = affine(image, {.translate = {static_cast<std::int64_t>(across), static_cast<std::int64_t>(down)},
                         .interpolation = pixels.interpolation,
                         .fill = pixels.fill});
}

// The range of an operation's magnitude in a policy.
enum class Reach : std::uint8_t { none, shear, translate_x, translate_y, rotate, factor, bits, threshold };

struct PolicyOperation {
  std::string_view name;
  Reach reach = Reach::none;
  void (*apply)(Image& image, double magnitude, const Pixels& pixels) = nullptr;
};

const std::array<PolicyOperation, 14> policy_operations{{
    {"Identity", Reach::none, [](Image&, double, const Pixels&) {}},
    {"ShearX", Reach::shear,
     [](Image& image, double m, const Pixels& pixels) { shear(image, m, 0, pixels); }},
    {"ShearY", Reach::shear,
     [](Image& image, double m, const Pixels& pixels) { shear(image, 0, m, pixels); }},
    {"TranslateX", Reach::translate_x,
     [](Image& image, double m, const Pixels& pixels) { translate(image, m, 0, pixels); }},
    {"TranslateY", Reach::translate_y,
     [](Image& image, double m, const Pixels& pixels) { translate(image, 0, m, pixels); }},
    {"Rotate", Reach::rotate,
     [](Image& image, double m, const Pixels& pixels) {
       image = rotate(image, m, pixels.interpolation, pixels.fill);
     }},
    {"Brightness", Reach::factor,
     [](Image& image, double m, const Pixels&) { adjust_brightness(image, 1 + m); }},
    {"Color", Reach::factor, [](Image& image, double m, const Pixels&) { adjust_saturation(image, 1 + m); }},
    {"Contrast", Reach::factor, [](Image& image, double m, const Pixels&) { adjust_contrast(image, 1 + m); }},
    {"Sharpness", Reach::factor,
     [](Image& image, double m, const Pixels&) { adjust_sharpness(image, 1 + m); }},
    {"Posterize", Reach::bits,
     [](Image& image, double m, const Pixels&) { posterize(image, static_cast<int>(m)); }},
    {"Solarize", Reach::threshold, [](Image& image, double m, const Pixels&) { solarize(image, m); }},
    {"AutoContrast", Reach::none, [](Image& image, double, const Pixels&) { autocontrast(image); }},
    {"Equalize", Reach::none, [](Image& image, double, const Pixels&) { equalize(image); }},
}};

// The largest magnitudes of a policy.
struct Strengths {
  double shear = 0;
  double translate_x = 0;  // largest shift in pixels
  double translate_y = 0;
  double rotate = 0;  // largest angle in degrees
  double factor = 0;
  double lost_bits = 0;
};

// Returns element `bin` of `bins` numbers from `first` to `last`, in float32 as torch.linspace() computes them.
double linspace(double first, double last, std::int64_t bin, std::int64_t bins) {
  const auto start = static_cast<float>(first);
  const auto end = static_cast<float>(last);
  const float step = (end - start) / static_cast<float>(bins - 1);
  return bin < bins / 2 ? start + step * static_cast<float>(bin)
                        : end - step * static_cast<float>(bins - 1 - bin);
}

double magnitude_of(Reach reach, const Strengths& strengths, std::int64_t bin, std::int64_t bins) {
  const auto up_to = [&](double most) { return linspace(0, most, bin, bins); };
  switch (reach) {
    case Reach::none:
      return 0;
    case Reach::shear:
      return up_to(strengths.shear);
    case Reach::translate_x:
      return up_to(strengths.translate_x);
    case Reach::translate_y:
      return up_to(strengths.translate_y);
    case Reach::rotate:
      return up_to(strengths.rotate);
    case Reach::factor:
      return up_to(strengths.factor);
    case Reach::bits:
      return 8 - std::nearbyint(static_cast<float>(bin) /
                                static_cast<float>(static_cast<double>(bins - 1) / strengths.lost_bits));
    case Reach::threshold:
      return linspace(255, 0, bin, bins);
  }
  return 0;
}

bool is_signed(Reach reach) {
  return reach != Reach::none && reach != Reach::bits && reach != Reach::threshold;
}

// Draws a sign, and applies the operation with the magnitude and, if its magnitudes have signs, with that sign.
void apply_random(Image& image, const PolicyOperation& operation, double magnitude, const Pixels& pixels,
                  Random& random) {
  const bool is_negative = random.below(2) == 1;
  operation.apply(image, is_negative && is_signed(operation.reach) ? -magnitude : magnitude, pixels);
}

const PolicyOperation& random_operation(Random& random) {
  return policy_operations.at(random.below(policy_operations.size()));
}

void check_bins(std::string_view operation, std::int64_t bins) {
  constexpr std::int64_t most = 1000;
  if (bins < 2 || bins > most)
    throw UserError(fmt::format("{}: num_magnitude_bins is {}; give 2 to {}", operation, bins, most));
}

}  // namespace

void apply_policy(Image& image, std::string_view operation, double magnitude, Interpolation interpolation,
                  Colour fill) {
  for (const PolicyOperation& known : policy_operations)
    if (known.name == operation) return known.apply(image, magnitude, {interpolation, fill});
  throw InternalError(fmt::format("the automatic policies have no operation '{}'", operation));
}

TrivialAugmentWide::TrivialAugmentWide(const Options& options) : options_(options) {
  check_bins(name(), options.num_magnitude_bins);
}

void TrivialAugmentWide::apply(Image& image, Random& random) const {
  constexpr Strengths strengths{
      .shear = 0.99, .translate_x = 32, .translate_y = 32, .rotate = 135, .factor = 0.99, .lost_bits = 6};
  const std::int64_t bins = options_.num_magnitude_bins;
  const PolicyOperation& operation = random_operation(random);
  const auto bin = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bins)));
  apply_random(image, operation, magnitude_of(operation.reach, strengths, bin, bins),
               {options_.interpolation, options_.fill}, random);
}

RandAugment::RandAugment(const Options& options) : options_(options) {
  constexpr std::int64_t most_operations = 100;
  check_bins(name(), options.num_magnitude_bins);
  if (options.num_ops < 1 || options.num_ops > most_operations)
    throw UserError(
        fmt::format("rand_augment: num_ops is {}; give 1 to {}", options.num_ops, most_operations));
  if (options.magnitude < 0 || options.magnitude >= options.num_magnitude_bins)
    throw UserError(
        fmt::format("rand_augment: the magnitude is {}; give 0 to {}, one less than num_magnitude_bins",
                    options.magnitude, options.num_magnitude_bins - 1));
}

void RandAugment::apply(Image& image, Random& random) const {
  constexpr double share = 150.0 / 331.0;
  const Strengths strengths{.shear = 0.3,
                            .translate_x = share * static_cast<double>(image.width),
                            .translate_y = share * static_cast<double>(image.height),
                            .rotate = 30,
                            .factor = 0.9,
                            .lost_bits = 4};
  for (std::int64_t i = 0; i < options_.num_ops; ++i) {
    const PolicyOperation& operation = random_operation(random);
    apply_random(image, operation,
                 magnitude_of(operation.reach, strengths, options_.magnitude, options_.num_magnitude_bins),
                 {options_.interpolation, options_.fill}, random);
  }
}

}  // namespace plexaura::augmentation
