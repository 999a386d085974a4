#include "app/use/predicted_images.h"

#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/images/image.h"
#include "training/files/file.h"

namespace plexaura::testing::predicted_images_test {

namespace {

std::vector<std::uint8_t> pixels_in(const std::string& path) {
  return decode_image(InputFile(path).read_all(), path).pixels;
}

}  // namespace

TEST_CASE("predicted images are PNG files with the names of the samples") {
  const TemporaryFolder folder;
  PredictedImages grey(folder / "new/grey", {1, 1, 3});
  const std::string path = grey.write("photos/a.jpg", std::array{-0.5, 0.5, 7.0});
  CHECK(path == (folder / "new/grey/a.png").string());
  CHECK(pixels_in(path) == std::vector<std::uint8_t>{0, 0, 0, 128, 128, 128, 255, 255, 255});
  CHECK(grey.write("a/digits.idx image 3", std::array{0.0, 0.0, 0.0}).ends_with("/digits.idx image 3.png"));
  CHECK(grey.write("photos/b.v2.JPEG", std::array{0.0, 0.0, 0.0}).ends_with("/grey/b.v2.png"));
  PredictedImages coloured(folder / "coloured", {3, 2, 1});
  CHECK(pixels_in(coloured.write("b", std::array{0.0, 0.2, 0.4, 0.6, 0.8, 1.0})) ==
        std::vector<std::uint8_t>{0, 102, 204, 51, 153, 255});
  // Another run replaces the files.
  PredictedImages again(folder / "coloured", {3, 2, 1});
  CHECK(pixels_in(again.write("b", std::array{0.0, 0.0, 0.0, 0.0, 0.0, 0.0})) ==
        std::vector<std::uint8_t>(6, 0));
}

TEST_CASE("images that would replace each other, and those that PNG has not, are refused") {
  const TemporaryFolder folder;
  PredictedImages images(folder / "out", {1, 1, 1});
  images.write("cat/a.jpg", std::array{0.0});
  CHECK(
      user_error([&] { images.write("dog/a.jpg", std::array{0.0}); }) ==
      (folder / "out/a.png").string() +
          ": two images to predict would be written to this file; predict each of them in a run of its own, "
          "with another folder for --images");
  const PredictedImages unwritten(folder / "unwritten", {1, 1, 1});
  CHECK(user_error([&] {
          unwritten.check_names({"cat/a.jpg", "b.jpg", "dog/a.jpg"});
        }).starts_with((folder / "unwritten/a.png").string() + ": two images to predict would be"));
  CHECK(user_error([&] {
          unwritten.check_names({"cat/a.jpg", "dog/a.png"});
        }).starts_with((folder / "unwritten/a.png").string() + ": two images to predict would be"));
  unwritten.check_names({"cat/a.jpg", "dog/b.png"});
  CHECK(!std::filesystem::exists(folder / "unwritten"));
  CHECK(user_error([&] {
          PredictedImages(folder / "x", {2, 4, 4});
        }) ==
        "--images writes images [C, H, W] with 1 or 3 channels, and the model's are [2,4,4]; leave it out");
  folder.write("photos/a.png", "");
  CHECK(user_error([&] {
          PredictedImages(folder / "photos", {1, 1, 1}).check_names({(folder / "photos/a.png").string()});
        }) ==
        fmt::format("{0}: contains the image to predict {0}/a.png, and results would replace images with "
                    "their names; name another folder with --images",
                    (folder / "photos").string()));
  folder.write("file", "");
  CHECK(user_error([&] {
          PredictedImages(folder / "file/x", {1, 1, 1}).write("a", std::array{0.0});
        }).find("name a folder, not a file") != std::string::npos);
}

}  // namespace plexaura::testing::predicted_images_test
