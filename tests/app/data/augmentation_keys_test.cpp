#include "app/data/augmentation_keys.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>

#include "app/data/data_options.h"
#include "tests/support/error_text.h"

namespace plexaura::testing::augmentation_keys_test {

namespace {

// Reads a section `data` for images of 96 pixels, with these keys.
DataOptions read(const std::string& keys) {
  const Config config = Config::parse(
      fmt::format("data: {{format: image_folder, path: x, image_size: 96, {}}}\n", keys), "x.yaml");
  DataOptions options = read_data_options(config.section("data"), DataUse::train, Task::classification);
  config.check_all_used();
  return options;
}

std::string error_of(const std::string& keys) {
  return user_error([&] { read(keys); });
}

}  // namespace

TEST_CASE("data.augmentation lists operations in their order") {
  const ImageOperations operations = read(R"(augmentation: [
      {random_resized_crop: {size: 96, scale: [0.2, 1], ratio: [0.5, 2]}}, {random_crop: {padding: 4, fill: [1, 2, 3]}},
      {center_crop: {resize: 100}}, {horizontal_flip: 0.5}, {vertical_flip: 0}, {rotation: {degrees: 15}},
      {affine: {degrees: 5, translate: [0.1, 0.2], scale: [0.9, 1.1], shear: [-5, 5, -1, 1], interpolation: bilinear}},
      {color_jitter: {brightness: 0.4, hue: 0.1}}, {grayscale: 0.1}, {gaussian_blur: {kernel_size: 5, sigma: [1, 1]}},
      {erasing: {p: 0.2, value: [255, 0, 0]}}, {erasing: {random: true}}, {trivial_augment_wide: {}},
      {rand_augment: {num_ops: 1}}])")
                                         .images.operations;
  REQUIRE(operations.size() == 14);
  CHECK(operations[0]->name() == "random_resized_crop");
  CHECK(operations[0]->side() == 96);
  CHECK(operations[1]->side() == 96);  // the default is image_size
  CHECK(operations[13]->name() == "rand_augment");
  CHECK(read("augment: true").images.operations.empty());
}

TEST_CASE("each operation is described") {
  std::set<std::string> operations;
  for (const KeyText& text : augmentation_key_texts()) {
    const std::string path = text.path.substr(std::string("data.augmentation[].").size());
    operations.insert(path.substr(0, path.find('.')));
    CHECK_FALSE(text.meaning.empty());
  }
  CHECK(operations.size() == 13);
}

TEST_CASE("an element that is no operation, or a wrong option, is an error with its place") {
  CHECK(error_of("augmentation: []") ==
        "x.yaml:1:69: data.augmentation is empty; list operations, or set data.augment to false");
  CHECK(error_of("augmentation: [{}]").find("data.augmentation[0] names no operation; give one") !=
        std::string::npos);
  CHECK(error_of("augmentation: [{horizontal_flop: 0.5}]").find("horizontal_flip") != std::string::npos);
  CHECK(error_of("augmentation: [{grayscale: 1, vertical_flip: 1}]")
            .find("grayscale and vertical_flip are in one element; give each") != std::string::npos);
  CHECK(error_of("augmentation: [{horizontal_flip: 2}]")
            .ends_with("is '2'; it must be a number >= 0 and <= 1"));
  CHECK(error_of("augmentation: [{rotation: {}}]").find("rotation.degrees is missing") != std::string::npos);
  CHECK(error_of("augmentation: [{rotation: {degrees: 3, degree: 4}}]").find("degree") != std::string::npos);
  CHECK(error_of("augmentation: [{random_resized_crop: {scale: [1, 0.5]}}]")
            .ends_with("data.augmentation[0].random_resized_crop cannot be used: scale is [1, 0.5]; give two "
                       "numbers from "
                       "1e-06 to 1, the smaller one first"));
  CHECK(error_of("augmentation: [{random_resized_crop: {scale: [1]}}]")
            .ends_with("cannot be used: scale has 1 numbers; give two, the smaller one first"));
  CHECK(error_of("augmentation: [{random_crop: {fill: [1]}}]").find("fill has 1 numbers; give three") !=
        std::string::npos);
  CHECK(error_of("augmentation: [{affine: {degrees: 0, shear: [1]}}]").find("shear has 1 numbers") !=
        std::string::npos);
  CHECK(error_of("augmentation: [{erasing: {random: true, value: [0, 0, 0]}}]")
            .find("value has no effect here") != std::string::npos);
}

TEST_CASE("the images have the size of data.image_size") {
  CHECK(error_of("augmentation: [{random_crop: {size: 32}}]")
            .ends_with("data.augmentation produces images of 32x32 pixels, and data.image_size is 96; give "
                       "both the same "
                       "size"));
  CHECK(read("resize_size: 96").images.resize_size == 96);
  CHECK(shorter_side_of(read("augment: false").images) == 110);
  CHECK(error_of("resize_size: 95")
            .ends_with("data.resize_size is 95, and 96 pixels are taken from the centre, as data.image_size "
                       "says; give at least that many"));
}

TEST_CASE("keys of the default augmentation have no effect beside a list") {
  CHECK(error_of("min_crop_scale: 0.5, augmentation: [{horizontal_flip: 0.5}]")
            .find("data.min_crop_scale has no effect here, because data.augmentation lists what is done to "
                  "an image") != std::string::npos);
  CHECK(error_of("augment: false, augmentation: [{horizontal_flip: 0.5}]")
            .find("data.augmentation has no effect here") != std::string::npos);
}

}  // namespace plexaura::testing::augmentation_keys_test
