#include "app/data/image_layout.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "app/data/open_data.h"
#include "tests/app/options/read_configuration.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::image_layout_test {

namespace fs = std::filesystem;

namespace {

std::string refusal(const fs::path& images, const std::string& keys = "") {
  return user_error([&] {
    open_data(Config::parse(
        fmt::format("data: {{format: image_folder, path: {}{}}}\n", images.string(), keys), "test.yaml"));
  });
}

}  // namespace

TEST_CASE("images without the folders for training and validation are told the layout") {
  const TemporaryFolder folder;
  const fs::path images = folder / "images";
  write_images(images);
  const std::string layout =
      fmt::format("images must be in {0}/train/CLASS and {0}/val/CLASS: ", images.string());
  fs::rename(images / "val", images / "Valid");
  CHECK(refusal(images).ends_with(
      "' has no folder 'val'; " + layout +
      "rename 'Valid' if it is that, or set data.validation_limit to 0 to train without "
      "validation"));
  fs::remove_all(images / "Valid");
  CHECK(refusal(images).ends_with(
      layout + "move them there, or set data.validation_limit to 0 to train without validation"));
  fs::rename(images / "train", images / "TRAIN");
  CHECK(refusal(images, ", validation_limit: 0")
            .ends_with("' has no folder 'train'; " + layout + "rename 'TRAIN' if it is that"));
  fs::rename(images / "TRAIN", images / "dogs");
  CHECK(refusal(images).ends_with("' has no folder 'train'; " + layout +
                                  "move them there, or set data.validation_share if they are in CLASS"));
}

TEST_CASE("folders for training and validation are not taken for classes to divide") {
  const TemporaryFolder folder;
  const fs::path images = folder / "images";
  write_images(images);
  std::string before = "val";
  for (const char* name : {"Test", "validation"}) {
    fs::rename(images / before, images / name);
    before = name;
    CHECK(
        refusal(images, ", validation_share: 0.5")
            .ends_with(fmt::format(
                "'{0}' has the folders 'train' and '{1}', and data.validation_share divides images in CLASS: "
                "leave data.validation_share out, or name a folder with a folder for each class, such as "
                "{0}/train",
                images.string(), name)));
  }
  CHECK(refusal(images, ", folds: 2, fold: 0").find("and data.folds divides images") != std::string::npos);
}

TEST_CASE("classes that lie one folder too deep are told so") {
  const TemporaryFolder folder;
  const fs::path images = folder / "images";
  write_images(images);
  for (const char* part : {"train", "val"}) {
    fs::rename(images / part, folder / "part");
    fs::create_directory(images / part);
    fs::rename(folder / "part", images / part / "train");
  }
  CHECK(refusal(images).ends_with(
      fmt::format("has samples of only one class, 'train', but a model needs two or more; its folder holds "
                  "folders, 'a' and others: if these are the classes, move them to {}/train",
                  images.string())));
  fs::remove_all(images / "train/train/b");
  CHECK(refusal(images).ends_with(fmt::format(
      "its folder holds the folder 'a': if these are the classes, move them to {}/train", images.string())));
}

}  // namespace plexaura::testing::image_layout_test
