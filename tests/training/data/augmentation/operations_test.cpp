#include "training/data/augmentation/operations.h"

#include <algorithm>
#include <doctest/doctest.h>
#include <memory>
#include <set>
#include <vector>

#include "tests/support/error_text.h"
#include "training/data/augmentation/policies.h"

namespace plexaura::augmentation::testing::operations_test {

namespace {

using plexaura::testing::user_error;

Image pattern(std::int64_t width, std::int64_t height) {
  Image image{width, height, {}};
  for (std::int64_t i = 0; i < width * height * 3; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(i * i % 251));
  return image;
}

// All operations, with options that change most images.
ImageOperations all_operations() {
  return {std::make_shared<RandomResizedCrop>(RandomResizedCrop::Options{.size = 12}),
          std::make_shared<RandomCrop>(RandomCrop::Options{.size = 12, .padding = 3}),
          std::make_shared<HorizontalFlip>(0.5),
          std::make_shared<VerticalFlip>(0.5),
          std::make_shared<RandomRotation>(RandomRotation::Options{.degrees = 40}),
          std::make_shared<RandomAffine>(RandomAffine::Options{.degrees = 20,
                                                               .translate = {0.2, 0.2},
                                                               .scale = {0.8, 1.2},
                                                               .shear_x = {-10, 10},
                                                               .shear_y = {-3, 3}}),
          std::make_shared<ColorJitter>(
              ColorJitter::Options{.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1}),
          std::make_shared<RandomGrayscale>(0.5),
          std::make_shared<RandomGaussianBlur>(RandomGaussianBlur::Options{.kernel_size = 5}),
          std::make_shared<RandomErasing>(RandomErasing::Options{}),
          std::make_shared<TrivialAugmentWide>(TrivialAugmentWide::Options{}),
          std::make_shared<RandAugment>(RandAugment::Options{})};
}

// The share of 2000 images that an operation changes.
double changed_share(const ImageOperation& operation) {
  int changed = 0;
  const Image before = pattern(7, 5);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Image image = before;
    Random random{1, i};
    operation.apply(image, random);
    if (image.pixels != before.pixels) ++changed;
  }
  return changed / 2000.0;
}

}  // namespace

TEST_CASE("an operation is a function of the image and of its random numbers, and keeps or sets the size") {
  for (const auto& operation : all_operations()) {
    CAPTURE(operation->name());
    std::set<std::vector<std::uint8_t>> results;
    for (std::uint64_t i = 0; i < 40; ++i) {
      const ImageSize size{i % 2 == 0 ? 20 : 9, 17};
      Image first = pattern(size.width, size.height);
      Image second = first;
      Random random{7, i};
      Random again{7, i};
      operation->apply(first, random);
      operation->apply(second, again);
      REQUIRE(first.pixels == second.pixels);
      REQUIRE(random.bits() == again.bits());
      REQUIRE(first.width == operation->side().value_or(size.width));
      REQUIRE(first.height == operation->side().value_or(size.height));
      REQUIRE(std::ssize(first.pixels) == first.width * first.height * 3);
      results.insert(first.pixels);
    }
    CHECK(results.size() > 3);
  }
}

TEST_CASE("operations with a probability change this share of the images") {
  CHECK(changed_share(HorizontalFlip(0)) == 0);
  CHECK(changed_share(HorizontalFlip(1)) == 1);
  CHECK(changed_share(HorizontalFlip(0.3)) == doctest::Approx(0.3).epsilon(0.1));
  CHECK(changed_share(VerticalFlip(0.3)) == doctest::Approx(0.3).epsilon(0.1));
  CHECK(changed_share(RandomGrayscale(0.3)) == doctest::Approx(0.3).epsilon(0.1));
  CHECK(changed_share(RandomErasing({.p = 0.3, .scale = {0.2, 0.3}})) == doctest::Approx(0.3).epsilon(0.1));
  CHECK(changed_share(RandomGaussianBlur({.kernel_size = 3, .sigma = {1, 1}, .p = 0.3})) ==
        doctest::Approx(0.3).epsilon(0.1));
}

TEST_CASE("options without jitter change nothing") {
  CHECK(changed_share(ColorJitter({})) == 0);
  CHECK(changed_share(RandomRotation({})) == 0);
  CHECK(changed_share(RandomAffine({})) == 0);
}

TEST_CASE("a random crop of a smaller image contains the image, and pads the rest") {
  const RandomCrop crop({.size = 8, .fill = {1, 2, 3}});
  for (std::uint64_t i = 0; i < 50; ++i) {
    Image image{3, 8, std::vector<std::uint8_t>(3 * 8 * 3, 77)};
    Random random{i};
    crop.apply(image, random);
    CHECK(std::ranges::count(image.pixels, 77) == 3 * 8 * 3);
    CHECK(std::ranges::count(image.pixels, 2) == 5 * 8);
  }
}

TEST_CASE("erasing covers an area within its scale, of one colour or of random values") {
  const RandomErasing one({.p = 1, .scale = {0.1, 0.2}, .value = Colour{255, 254, 253}});
  const RandomErasing noise({.p = 1, .scale = {0.1, 0.2}, .value = std::nullopt});
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Image grey{100, 60, std::vector<std::uint8_t>(100 * 60 * 3, 77)};
    Image image = grey;
    Random random{i};
    one.apply(image, random);
    const double area = static_cast<double>(std::ranges::count(image.pixels, 254)) / (100 * 60);
    CHECK(area > 0.09);
    CHECK(area < 0.21);
    image = grey;
    noise.apply(image, random);
    CHECK(std::set<std::uint8_t>(image.pixels.begin(), image.pixels.end()).size() > 100);
  }
}

TEST_CASE("a policy applies each of its operations, and keeps magnitudes in torchvision's range") {
  std::set<std::vector<std::uint8_t>> trivial;
  std::set<std::vector<std::uint8_t>> weak;
  const TrivialAugmentWide wide({});
  const RandAugment none({.num_ops = 1, .magnitude = 0});
  for (std::uint64_t i = 0; i < 3000; ++i) {
    Image image = pattern(20, 20);
    Random random{i};
    wide.apply(image, random);
    trivial.insert(image.pixels);
    image = pattern(20, 20);
    none.apply(image, random);
    weak.insert(image.pixels);
  }
  // With magnitude 0, only AutoContrast, Equalize and Solarize(255) may change an image.
  CHECK(weak.size() <= 4);
  // The strengths of 7 signed operations with two directions, and of others, are 31.
  CHECK(trivial.size() > 150);
  CHECK(trivial.size() <= 3 + 9 * 61 + 31 + 7);
}

TEST_CASE("options that are not permitted are errors that name operation and rule") {
  CHECK(user_error([] { HorizontalFlip(1.5); }) ==
        "horizontal_flip: the probability is 1.5; give a number from 0 to 1");
  CHECK(user_error([] {
          RandomResizedCrop({.scale = {1, 0.5}});
        }) ==
        "random_resized_crop: scale is [1, 0.5]; give two numbers from 1e-06 to 1, the smaller one first");
  CHECK(user_error([] { RandomCrop({.size = 0}); }) == "random_crop: the size is 0; give 1 to 4096 pixels");
  CHECK(user_error([] { RandomCrop({.size = 8, .padding = 9}); }) ==
        "random_crop: the padding is 9; give 0 to 8 pixels, the size");
  CHECK(user_error([] {
          ResizedCentreCrop({.size = 8, .resize = 7});
        }).ends_with("give a resize of 8 or more"));
  CHECK(user_error([] { ColorJitter({.hue = 0.6}); }) ==
        "color_jitter: hue is 0.6; give a number from 0 to 0.5");
  CHECK(user_error([] { RandomGaussianBlur({.kernel_size = 4}); }) ==
        "gaussian_blur: the kernel_size is 4; give an odd number");
  CHECK(user_error([] { RandomAffine({.translate = {2, 0}}); }).starts_with("affine: translate has 2;"));
  CHECK(user_error([] { RandAugment({.magnitude = 31}); }) ==
        "rand_augment: the magnitude is 31; give 0 to 30, one less than num_magnitude_bins");
  CHECK(user_error([] { TrivialAugmentWide({.num_magnitude_bins = 1}); }) ==
        "trivial_augment_wide: num_magnitude_bins is 1; give 2 to 1000");
  CHECK(user_error([] {
          Image image = pattern(9, 3);
          Random random{1};
          RandomGaussianBlur({.kernel_size = 7}).apply(image, random);
        }).ends_with("too large for an image of 9x3; give a kernel_size of at most 5"));
}

}  // namespace plexaura::augmentation::testing::operations_test
