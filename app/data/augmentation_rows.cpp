#include "app/data/augmentation_rows.h"

#include <fmt/format.h>
#include <string_view>

#include "core/base/error.h"
#include "training/data/augmentation/operations.h"

namespace plexaura {

namespace {

using namespace augmentation;

// The options of an operation, and the values of its keys that are not members of the options.
template <class Options>
struct KeyValues {
  Options options = {};
  std::vector<double> scale = {}, ratio = {}, sigma = {}, translate = {}, shear = {};
  std::vector<std::int64_t> fill = {0, 0, 0};
  bool has_random_values = false;
};

std::vector<double> numbers(const Span& span) { return {span.low, span.high}; }

Span span_of(std::string_view key, const std::vector<double>& list) {
  if (list.size() != 2)
    throw UserError(fmt::format("{} has {} numbers; give two, the smaller one first", key, list.size()));
  return {list[0], list[1]};
}

Colour colour_of(std::string_view key, const std::vector<std::int64_t>& list) {
  if (list.size() != 3)
    throw UserError(fmt::format("{} has {} numbers; give three, for red, green and blue", key, list.size()));
  return {static_cast<std::uint8_t>(list[0]), static_cast<std::uint8_t>(list[1]),
          static_cast<std::uint8_t>(list[2])};
}

constexpr NumberRange probability{.minimum = 0, .maximum = 1};
constexpr NumberRange any_angle{.minimum = 0, .maximum = 180};

Key size_key(const std::string& operation, std::int64_t& size, const char* meaning) {
  return {.name = operation + ".size",
          .into = &size,
          .range = {.minimum = 1, .maximum = 4096},
          .late_default = {.shown = "data.image_size", .set = [] {}},
          .meaning = meaning};
}

Key fill_key(const std::string& name, std::vector<std::int64_t>& fill) {
  return {.name = name,
          .into = &fill,
          .range = {.minimum = 0, .maximum = 255},
          .meaning = "red, green and blue of the pixels outside the image"};
}

Key interpolation_key(const std::string& operation, Interpolation& interpolation) {
  return {.name = operation + ".interpolation",
          .into = one_of(interpolation,
                         {{"nearest", Interpolation::nearest}, {"bilinear", Interpolation::bilinear}}),
          .meaning = "how values between pixels are computed"};
}

OperationReader open_resized_crop(std::int64_t image_size) {
  const auto values = std::make_shared<KeyValues<RandomResizedCrop::Options>>();
  auto& options = values->options;
  options.size = image_size;
  values->scale = numbers(options.scale);
  values->ratio = numbers(options.ratio);
  return {{size_key("random_resized_crop", options.size,
                    "`RandomResizedCrop`: scales a random part to this width and height"),
           {.name = "random_resized_crop.scale",
            .into = &values->scale,
            .range = {.maximum = 1, .above = 0},
            .meaning = "smallest and largest area of the part, as fractions of the image's area"},
           {.name = "random_resized_crop.ratio",
            .into = &values->ratio,
            .range = {.maximum = 1000, .above = 0},
            .meaning = "smallest and largest width / height of the part"}},
          [values] {
            values->options.scale = span_of("scale", values->scale);
            values->options.ratio = span_of("ratio", values->ratio);
            return std::make_shared<RandomResizedCrop>(values->options);
          }};
}

OperationReader open_random_crop(std::int64_t image_size) {
  const auto values = std::make_shared<KeyValues<RandomCrop::Options>>();
  values->options.size = image_size;
  return {{size_key("random_crop", values->options.size,
                    "`RandomCrop`: takes a part of this width and height at a random position, without "
                    "scaling it; a smaller "
                    "image is padded"),
           {.name = "random_crop.padding",
            .into = &values->options.padding,
            .range = {.minimum = 0, .maximum = 4096},
            .meaning = "pixels that are added on each side before; at most `size`"},
           fill_key("random_crop.fill", values->fill)},
          [values] {
            values->options.fill = colour_of("fill", values->fill);
            return std::make_shared<RandomCrop>(values->options);
          }};
}

OperationReader open_centre_crop(std::int64_t image_size) {
  const auto values = std::make_shared<KeyValues<ResizedCentreCrop::Options>>();
  auto& options = values->options;
  options.size = image_size;
  return {
      {size_key("center_crop", options.size, "`Resize(resize)`, `CenterCrop(size)`: the centre of the image"),
       {.name = "center_crop.resize",
        .into = &options.resize,
        .range = {.minimum = 1, .maximum = 4096},
        .required = true,
        .meaning = "pixels of the shorter side, to which the image is scaled before; at least `size`"}},
      [values] { return std::make_shared<ResizedCentreCrop>(values->options); }};
}

template <class Operation>
OperationReader open_probability(const char* name, const char* meaning) {
  const auto p = std::make_shared<double>(0.5);
  return {{{.name = name, .into = p.get(), .range = probability, .required = true, .meaning = meaning}},
          [p] { return std::make_shared<Operation>(*p); }};
}

OperationReader open_horizontal_flip(std::int64_t /*image_size*/) {
  return open_probability<HorizontalFlip>("horizontal_flip",
                                          "`RandomHorizontalFlip`: the probability of a flip");
}

OperationReader open_vertical_flip(std::int64_t /*image_size*/) {
  return open_probability<VerticalFlip>("vertical_flip", "`RandomVerticalFlip`: the probability of a flip");
}

OperationReader open_grayscale(std::int64_t /*image_size*/) {
  return open_probability<RandomGrayscale>(
      "grayscale", "`RandomGrayscale`: the probability that an image loses its colours");
}

OperationReader open_rotation(std::int64_t /*image_size*/) {
  const auto values = std::make_shared<KeyValues<RandomRotation::Options>>();
  return {{{.name = "rotation.degrees",
            .into = &values->options.degrees,
            .range = any_angle,
            .required = true,
            .meaning = "`RandomRotation`: the largest angle in both directions, around the centre"},
           interpolation_key("rotation", values->options.interpolation),
           fill_key("rotation.fill", values->fill)},
          [values] {
            values->options.fill = colour_of("fill", values->fill);
            return std::make_shared<RandomRotation>(values->options);
          }};
}

void set_shears(const std::vector<double>& shear, RandomAffine::Options& options) {
  if (!shear.empty() && shear.size() != 2 && shear.size() != 4)
    throw UserError(
        fmt::format("shear has {} numbers; give the smallest and the largest angle along x, and then along y",
                    shear.size()));
  if (shear.size() >= 2) options.shear_x = {shear[0], shear[1]};
  if (shear.size() == 4) options.shear_y = {shear[2], shear[3]};
}

OperationReader open_affine(std::int64_t /*image_size*/) {
  const auto values = std::make_shared<KeyValues<RandomAffine::Options>>();
  auto& options = values->options;
  values->scale = numbers(options.scale);
  values->translate = {0, 0};
  return {
      {{.name = "affine.degrees",
        .into = &options.degrees,
        .range = any_angle,
        .required = true,
        .meaning = "`RandomAffine`: the largest angle in both directions, around the centre"},
       {.name = "affine.translate",
        .into = &values->translate,
        .range = probability,
        .meaning = "the largest shifts in both directions, as fractions of the width and of the height"},
       {.name = "affine.scale",
        .into = &values->scale,
        .range = {.minimum = 0.01, .maximum = 100},
        .meaning = "smallest and largest factor of the size"},
       {.name = "affine.shear",
        .into = &values->shear,
        .range = {.minimum = -89, .maximum = 89},
        .meaning = "smallest and largest angle in degrees along x, and, if four numbers are given, along y"},
       interpolation_key("affine", options.interpolation),
       fill_key("affine.fill", values->fill)},
      [values] {
        if (values->translate.size() != 2)
          throw UserError(
              fmt::format("translate has {} numbers; give two, for x and y", values->translate.size()));
        values->options.translate = {values->translate[0], values->translate[1]};
        values->options.scale = span_of("scale", values->scale);
        set_shears(values->shear, values->options);
        values->options.fill = colour_of("fill", values->fill);
        return std::make_shared<RandomAffine>(values->options);
      }};
}

OperationReader open_color_jitter(std::int64_t /*image_size*/) {
  const auto options = std::make_shared<ColorJitter::Options>();
  const NumberRange strength{.minimum = 0, .maximum = 1000};
  return {{{.name = "color_jitter.brightness",
            .into = &options->brightness,
            .range = strength,
            .meaning = "`ColorJitter`: with x, a factor from max(0, 1 − x) to 1 + x multiplies the values"},
           {.name = "color_jitter.contrast",
            .into = &options->contrast,
            .range = strength,
            .meaning = "likewise: the factor of the distance from the mean of the image in grey"},
           {.name = "color_jitter.saturation",
            .into = &options->saturation,
            .range = strength,
            .meaning = "likewise: the factor of the distance from the pixel in grey"},
           {.name = "color_jitter.hue",
            .into = &options->hue,
            .range = {.minimum = 0, .maximum = 0.5},
            .meaning = "the largest turn of the hue in both directions, as a fraction of the colour circle. "
                       "The four changes "
                       "are made in random order"}},
          [options] { return std::make_shared<ColorJitter>(*options); }};
}

OperationReader open_gaussian_blur(std::int64_t /*image_size*/) {
  const auto values = std::make_shared<KeyValues<RandomGaussianBlur::Options>>();
  auto& options = values->options;
  values->sigma = numbers(options.sigma);
  return {{{.name = "gaussian_blur.kernel_size",
            .into = &options.kernel_size,
            .range = {.minimum = 1, .maximum = 4095},
            .required = true,
            .meaning = "`GaussianBlur`: width and height of the kernel in pixels, an odd number below 2 "
                       "`data.image_size`"},
           {.name = "gaussian_blur.sigma",
            .into = &values->sigma,
            .range = {.minimum = 0.001, .maximum = 1000},
            .meaning = "smallest and largest standard deviation in pixels"},
           {.name = "gaussian_blur.p",
            .into = &options.p,
            .range = probability,
            .meaning = "the probability of a blur"}},
          [values] {
            values->options.sigma = span_of("sigma", values->sigma);
            return std::make_shared<RandomGaussianBlur>(values->options);
          }};
}

OperationReader open_erasing(std::int64_t /*image_size*/) {
  const auto values = std::make_shared<KeyValues<RandomErasing::Options>>();
  auto& options = values->options;
  values->scale = numbers(options.scale);
  values->ratio = numbers(options.ratio);
  return {{{.name = "erasing.p",
            .into = &options.p,
            .range = probability,
            .meaning = "`RandomErasing`: the probability that a rectangle is overwritten"},
           {.name = "erasing.scale",
            .into = &values->scale,
            .range = probability,
            .meaning = "smallest and largest area of the rectangle, as fractions of the image's area"},
           {.name = "erasing.ratio",
            .into = &values->ratio,
            .range = {.maximum = 1000, .above = 0},
            .meaning = "smallest and largest height / width of the rectangle"},
           {.name = "erasing.random", .into = &values->has_random_values, .meaning = "writes random values"},
           {.name = "erasing.value",
            .into = &values->fill,
            .range = {.minimum = 0, .maximum = 255},
            .needs = {.key = "erasing.random", .values = {"false"}},
            .meaning = "red, green and blue of the rectangle. Torchvision often erases after `Normalize`, "
                       "where 0 is the mean: "
                       "that is 255 `data.mean` here"}},
          [values] {
            values->options.scale = span_of("scale", values->scale);
            values->options.ratio = span_of("ratio", values->ratio);
            values->options.value = colour_of("value", values->fill);
            if (values->has_random_values) values->options.value.reset();
            return std::make_shared<RandomErasing>(values->options);
          }};
}

Key bins_key(const std::string& operation, std::int64_t& bins, const char* meaning) {
  return {.name = operation + ".num_magnitude_bins",
          .into = &bins,
          .range = {.minimum = 2, .maximum = 1000},
          .meaning = meaning};
}

OperationReader open_trivial_augment(std::int64_t /*image_size*/) {
  const auto values = std::make_shared<KeyValues<TrivialAugmentWide::Options>>();
  auto& options = values->options;
  return {{bins_key("trivial_augment_wide", options.num_magnitude_bins,
                    "`TrivialAugmentWide`: one of 14 operations, with one of this many strengths"),
           interpolation_key("trivial_augment_wide", options.interpolation),
           fill_key("trivial_augment_wide.fill", values->fill)},
          [values] {
            values->options.fill = colour_of("fill", values->fill);
            return std::make_shared<TrivialAugmentWide>(values->options);
          }};
}

OperationReader open_rand_augment(std::int64_t /*image_size*/) {
  const auto values = std::make_shared<KeyValues<RandAugment::Options>>();
  auto& options = values->options;
  return {{{.name = "rand_augment.num_ops",
            .into = &options.num_ops,
            .range = {.minimum = 1, .maximum = 100},
            .meaning = "`RandAugment`: applies this many of 14 operations, one after the other"},
           {.name = "rand_augment.magnitude",
            .into = &options.magnitude,
            .range = {.minimum = 0, .maximum = 999},
            .meaning = "the strength of each; below `num_magnitude_bins`"},
           bins_key("rand_augment", options.num_magnitude_bins, "the number of strengths"),
           interpolation_key("rand_augment", options.interpolation),
           fill_key("rand_augment.fill", values->fill)},
          [values] {
            values->options.fill = colour_of("fill", values->fill);
            return std::make_shared<RandAugment>(values->options);
          }};
}

}  // namespace

const std::vector<OperationRow>& operation_rows() {
  static const std::vector<OperationRow> rows{{"random_resized_crop", open_resized_crop},
                                              {"random_crop", open_random_crop},
                                              {"center_crop", open_centre_crop},
                                              {"horizontal_flip", open_horizontal_flip},
                                              {"vertical_flip", open_vertical_flip},
                                              {"rotation", open_rotation},
                                              {"affine", open_affine},
                                              {"color_jitter", open_color_jitter},
                                              {"grayscale", open_grayscale},
                                              {"gaussian_blur", open_gaussian_blur},
                                              {"erasing", open_erasing},
                                              {"trivial_augment_wide", open_trivial_augment},
                                              {"rand_augment", open_rand_augment}};
  return rows;
}

}  // namespace plexaura
