#include "app/data/split_data.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "app/data/pack_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/images/image.h"
#include "training/files/file.h"

namespace plexaura::testing::split_data_test {

namespace {

namespace fs = std::filesystem;

// Writes four images of each of two classes into each part. No two are equal, and none is symmetric.
void write_many_images(const fs::path& folder) {
  std::uint8_t shade = 0;
  for (const char* part : {"train/a", "train/b", "val/a", "val/b"}) {
    fs::create_directories(folder / part);
    for (int i = 0; i < 4; ++i) {
      Image image{16, 16, std::vector<std::uint8_t>(16 * 16 * 3, shade += 10)};
      for (std::size_t pixel = 0; pixel < image.pixels.size(); pixel += 5) image.pixels[pixel] = 250;
      write_file(folder / part / fmt::format("{}.png", i), encode_png(image));
    }
  }
}

RunData open_images(const fs::path& path, const std::string& keys) {
  return open_data(Config::parse(
      fmt::format("data: {{format: image_folder, path: {}, image_size: 8{}}}\n", path.string(), keys),
      "test.yaml"));
}

std::string refusal(const fs::path& path, const std::string& keys) {
  return user_error([&] { open_images(path, keys); });
}

std::vector<std::byte> pixels_of(const SampleSource& source, std::int64_t index, std::int64_t epoch = 0) {
  std::vector<std::byte> pixels(3 * 8 * 8);
  std::int64_t label = 0;
  source.read_fields(index, {.seed = 1, .epoch = epoch},
                     std::vector<std::span<std::byte>>{pixels, std::as_writable_bytes(std::span(&label, 1))});
  return pixels;
}

std::vector<std::vector<std::byte>> all_pixels(const SampleSource& source) {
  std::vector<std::vector<std::byte>> all;
  for (std::int64_t i = 0; i < source.size(); ++i) all.push_back(pixels_of(source, i));
  std::ranges::sort(all);
  return all;
}

}  // namespace

TEST_CASE("each image of a folder is in the validation of one fold, without augmentation") {
  const TemporaryFolder folder;
  write_many_images(folder / "images");
  const fs::path classes = folder / "images/train";
  const RunData plain = open_images(folder / "images", ", augment: false");
  std::vector<std::vector<std::byte>> validated;
  for (int fold = 0; fold < 2; ++fold) {
    const RunData data = open_images(classes, fmt::format(", folds: 2, fold: {}", fold));
    CHECK(data.train->size() + data.validation->size() == plain.train->size());
    CHECK(pixels_of(*data.train, 0, 0) != pixels_of(*data.train, 0, 1));
    CHECK(data.is_cut);
    CHECK(data.trained.classes == plain.trained.classes);
    CHECK(data.preparation.starts_with("random crop"));
    for (auto& pixels : all_pixels(*data.validation)) validated.push_back(std::move(pixels));
  }
  std::ranges::sort(validated);
  CHECK(validated == all_pixels(*plain.train));
  CHECK(open_images(classes, ", folds: 2, fold: 0").origin !=
        open_images(classes, ", folds: 2, fold: 1").origin);
}

TEST_CASE("a share of the images of a folder is held out, and another division is another origin") {
  const TemporaryFolder folder;
  write_many_images(folder / "images");
  const fs::path classes = folder / "images/train";
  const RunData half = open_images(classes, ", validation_share: 0.5");
  CHECK(half.validation->size() == half.train->size());
  CHECK(open_images(classes, ", validation_share: 0.5").origin == half.origin);
  fs::rename(classes / "a/1.png", classes / "a/other.png");
  CHECK(open_images(classes, ", validation_share: 0.5").origin != half.origin);
}

TEST_CASE("images that cannot be divided are refused") {
  const TemporaryFolder folder;
  write_many_images(folder / "images");
  const fs::path images = folder / "images";
  CHECK(refusal(images, ", folds: 2")
            .ends_with(
                fmt::format("' has the folders 'train' and 'val', and data.folds divides images in CLASS: "
                            "leave data.folds out, or name a folder with a folder for each class, such as "
                            "{}/train",
                            images.string())));
  CHECK(refusal(images, ", split_seed: 3")
            .ends_with(
                "data.split_seed has no effect here, because neither data.folds nor data.validation_share is "
                "given; remove it"));
  CHECK(user_error([&] {
          pack_data(Config::parse(fmt::format("data: {{format: image_folder, path: {}, folds: 2}}\n",
                                              (images / "train").string()),
                                  "test.yaml"),
                    {.folder = folder.path()});
        })
            .ends_with("data.folds has no effect here, because tools/pack packs the images of the folders "
                       "train and val; remove it"));
}

}  // namespace plexaura::testing::split_data_test
