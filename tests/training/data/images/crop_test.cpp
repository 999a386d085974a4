#include "training/data/images/crop.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

namespace plexaura::testing::crop_test {

namespace {

double area_of(const Box& box) { return static_cast<double>(box.width * box.height); }
double ratio_of(const Box& box) { return static_cast<double>(box.width) / static_cast<double>(box.height); }

std::vector<Crop> random_crops(ImageSize size, double smallest_area) {
  Random random{3};
  std::vector<Crop> crops;
  for (int i = 0; i < 20000; ++i) crops.push_back(random_crop(size, 16, smallest_area, true, random));
  return crops;
}

double share(const std::vector<Crop>& crops, bool (*holds)(const Crop&)) {
  return static_cast<double>(std::ranges::count_if(crops, holds)) / static_cast<double>(crops.size());
}

}  // namespace

TEST_CASE("the centre is scaled and placed as torchvision's Resize(256) and CenterCrop(224) do it") {
  struct Case {
    ImageSize size, scaled;
    std::int64_t left, top;
  };
  // Expected values are those of torchvision 0.29.2. A margin of 117 begins at 58, one of 115 at 58, one of
  // 161 at 80: halves are rounded to the even number.
  for (const Case& expected : {Case{{500, 375}, {341, 256}, 58, 16}, Case{{375, 500}, {256, 341}, 16, 58},
                               Case{{333, 500}, {256, 384}, 16, 80}, Case{{499, 331}, {385, 256}, 80, 16},
                               Case{{256, 256}, {256, 256}, 16, 16}, Case{{640, 481}, {340, 256}, 58, 16},
                               Case{{1000, 3}, {85333, 256}, 42554, 16}, Case{{320, 241}, {339, 256}, 58, 16},
                               Case{{300, 200}, {384, 256}, 80, 16}}) {
    CAPTURE(expected.size.width);
    const Crop crop = centre_crop(expected.size, 256, 224);
    CHECK(crop.scaled.width == expected.scaled.width);
    CHECK(crop.scaled.height == expected.scaled.height);
    CHECK(crop.window.left == expected.left);
    CHECK(crop.window.top == expected.top);
    CHECK(crop.window.width == 224);
    CHECK(crop.window.height == 224);
    CHECK(crop.source.width == expected.size.width);
    CHECK(crop.source.height == expected.size.height);
    CHECK_FALSE(crop.horizontal_flip);
  }
}

TEST_CASE("random crops lie within the image, in every place, and become the whole sample") {
  for (const ImageSize size : {ImageSize{100, 80}, ImageSize{1, 1}, ImageSize{1000, 10}, ImageSize{2, 9}}) {
    bool touches_left = false;
    bool touches_right = false;
    for (const Crop& crop : random_crops(size, 0.08)) {
      REQUIRE(crop.source.left >= 0);
      REQUIRE(crop.source.top >= 0);
      REQUIRE(crop.source.width >= 1);
      REQUIRE(crop.source.height >= 1);
      REQUIRE(crop.source.left + crop.source.width <= size.width);
      REQUIRE(crop.source.top + crop.source.height <= size.height);
      REQUIRE(crop.scaled.width == 16);
      REQUIRE(crop.window.width == 16);
      touches_left = touches_left || crop.source.left == 0;
      touches_right = touches_right || crop.source.left + crop.source.width == size.width;
    }
    if (size.width < 1000) {
      CHECK(touches_left);
      CHECK(touches_right);
    }
  }
}

// On a square image a shape and its inverse are equally likely, whatever the distribution. This checks that
// the logarithm is uniform between log(3/4) and log(4/3).
TEST_CASE("the shape of random crops is log-uniform from 3/4 to 4/3") {
  const auto crops = random_crops({4000, 4000}, 0.05);
  for (const Crop& crop : crops) {
    REQUIRE(ratio_of(crop.source) > 0.748);
    REQUIRE(ratio_of(crop.source) < 1.336);
  }
  // Small areas fit with every shape, so that no draw is repeated. Counts in quarters of the logarithm's
  // range.
  std::vector<double> places;
  for (const Crop& crop : crops)
    if (area_of(crop.source) < 0.5 * 4000 * 4000)
      places.push_back(0.5 + 0.5 * std::log(ratio_of(crop.source)) / std::log(4.0 / 3.0));
  for (const double below : {0.25, 0.5, 0.75}) {
    const auto count = std::ranges::count_if(places, [&](double place) { return place < below; });
    CHECK(static_cast<double>(count) / static_cast<double>(places.size()) ==
          doctest::Approx(below).epsilon(0.01));
  }
}

TEST_CASE("the area of random crops is uniform from the smallest to the whole") {
  const auto crops = random_crops({4000, 4000}, 0.2);
  double smallest = 1;
  for (const Crop& crop : crops) smallest = std::min(smallest, area_of(crop.source) / (4000.0 * 4000));
  CHECK(smallest > 0.1995);  // width and height are rounded
  CHECK(smallest < 0.21);
  // Up to an area of 3/4 every shape fits into a square, so that no draw is repeated.
  const double lower =
      share(crops, [](const Crop& crop) { return area_of(crop.source) < 0.4 * 4000 * 4000; });
  const double middle = share(crops, [](const Crop& crop) {
    return area_of(crop.source) >= 0.4 * 4000 * 4000 && area_of(crop.source) < 0.6 * 4000 * 4000;
  });
  CHECK(lower == doctest::Approx(middle).epsilon(0.01));
}

TEST_CASE("an image too long for any shape gives the largest part in the middle") {
  Random random{5};
  const Box across = random_crop({1000, 10}, 16, 1, true, random).source;
  CHECK(across.width == 13);  // 10 * 4/3
  CHECK(across.height == 10);
  CHECK(across.left == 493);
  const Box down = random_crop({10, 1000}, 16, 1, true, random).source;
  CHECK(down.width == 10);
  CHECK(down.height == 13);  // 10 / (3/4)
  CHECK(down.top == 493);
}

TEST_CASE("half of all random crops are flipped, or none") {
  const double flipped =
      share(random_crops({50, 50}, 0.08), [](const Crop& crop) { return crop.horizontal_flip; });
  CHECK(flipped == doctest::Approx(0.5).epsilon(0.01));
  Random random{3};
  for (int i = 0; i < 100; ++i) CHECK_FALSE(random_crop({50, 50}, 16, 0.08, false, random).horizontal_flip);
}

}  // namespace plexaura::testing::crop_test
