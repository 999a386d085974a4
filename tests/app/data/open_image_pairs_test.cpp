#include "app/data/open_image_pairs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "app/data/prediction_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/images/image.h"

namespace plexaura::testing::open_image_pairs_test {

namespace {

// Three images to train on and one for validation, with masks of the classes 0 and 1, and with images as targets.
void write_pairs(const TemporaryFolder& folder) {
  const Image image{4, 4, std::vector<std::uint8_t>(48, 100)};
  const std::vector<std::uint8_t> classes{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1};
  for (const char* name : {"train/a", "train/b", "train/c", "val/d"}) {
    folder.write(fmt::format("images/{}.jpg", name), encode_jpeg(image));
    folder.write(fmt::format("masks/{}.png", name), encode_grey_png(4, 4, classes));
    folder.write(fmt::format("sharp/{}.png", name), encode_png(image));
  }
}

Config config_of(const TemporaryFolder& folder, const std::string& data,
                 const std::string& model = "task: segmentation") {
  return Config::parse(
      fmt::format("model: {{name: unet, {}}}\ndata: {{format: image_folder, image_size: 4, path: {}{}}}\n",
                  model, (folder / "images").string(), data),
      "x.yaml");
}

std::string masks_in(const TemporaryFolder& folder, const std::string& more = ", classes: 2") {
  return fmt::format(", targets: {}{}", (folder / "masks").string(), more);
}

std::string error_of(const TemporaryFolder& folder, const std::string& data,
                     const std::string& model = "task: segmentation") {
  return user_error([&] { open_data(config_of(folder, data, model)); });
}

}  // namespace

TEST_CASE("a segmentation has masks as targets, and the classes of its pixels") {
  const TemporaryFolder folder;
  write_pairs(folder);
  const RunData data = open_data(config_of(folder, masks_in(folder)));
  CHECK(to_string(data.train->fields()) == "uint8[3,4,4] samples, uint8[4,4] targets");
  CHECK(data.validation->fields() == data.train->fields());
  CHECK(data.description == fmt::format("3 images with masks, 1 for validation, from {} and {}",
                                        (folder / "images").string(), (folder / "masks").string()));
  CHECK(data.output_count() == 2);
  CHECK(data.outputs == "0 to 1, of each pixel");
  CHECK(data.keys.contains("data.targets"));
  // The trained model can predict without the data, and be evaluated with it.
  const Config config = config_of(folder, masks_in(folder));
  CHECK(prediction_data(config, data.trained)->output_count() == 2);
  CHECK(open_data(config, data.trained).validation->size() == 1);
  CHECK(user_error([&] {
          open_data(config_of(folder, masks_in(folder, ", classes: 3")), data.trained);
        }).ends_with("data.classes is 3, and the weights are of a model of 2 classes; give that number"));
  CHECK(user_error([&] {
          prediction_data(config_of(folder, ", classes: 3"), data.trained);
        }).ends_with("data.classes is 3, and the weights are of a model of 2 classes; give that number"));
  CHECK(prediction_data(config_of(folder, ""), data.trained)->output_count() == 2);
}

TEST_CASE("parts of the images with targets are used as those of other data") {
  const TemporaryFolder folder;
  write_pairs(folder);
  const RunData all = open_data(config_of(folder, masks_in(folder)));
  const RunData some =
      open_data(config_of(folder, masks_in(folder, ", classes: 2, limit: 2, validation_limit: 0")));
  CHECK(some.train->size() == 2);
  CHECK(some.validation->size() == 0);
  CHECK(some.origin == all.origin);
  CHECK(open_data(config_of(folder, masks_in(folder, ", classes: 2, use_fraction: 0.4"))).train->size() == 1);
  folder.write("images/train/e.jpg", encode_jpeg({4, 4, std::vector<std::uint8_t>(48, 100)}));
  folder.write("masks/train/e.png", encode_grey_png(4, 4, std::vector<std::uint8_t>(16)));
  CHECK(open_data(config_of(folder, masks_in(folder))).origin != all.origin);
}

TEST_CASE("a reconstruction may have images of its own as targets") {
  const TemporaryFolder folder;
  write_pairs(folder);
  const std::string targets = fmt::format(", targets: {}", (folder / "sharp").string());
  const RunData data = open_data(config_of(folder, targets, "task: reconstruction"));
  CHECK(to_string(data.train->fields()) == "uint8[3,4,4] samples, uint8[3,4,4] targets");
  CHECK(prediction_data(config_of(folder, targets, "task: reconstruction"), data.trained).has_value());
  CHECK(error_of(folder, targets + ", noise: 0.1", "task: reconstruction")
            .ends_with("data.noise has no effect here, because data.targets names the targets of the images; "
                       "remove it"));
  CHECK(error_of(folder, targets + ", classes: 2", "task: reconstruction")
            .ends_with("data.classes has no effect here, because model.task is reconstruction; remove it"));
}

TEST_CASE("keys of targets that do not fit are refused, with their place") {
  const TemporaryFolder folder;
  write_pairs(folder);
  CHECK(error_of(folder, "") ==
        "x.yaml:2:1: data.targets is missing, and model.task is segmentation; name "
        "the folder with the masks");
  CHECK(
      error_of(folder, masks_in(folder, ""))
          .ends_with("data.classes is missing, and model.task is segmentation; give the number of classes of "
                     "the pixels in the masks"));
  CHECK(error_of(folder, masks_in(folder, ""), "task: classification")
            .ends_with("data.targets names images with targets of their own, and model.task is "
                       "classification; set that to segmentation or reconstruction, or remove it"));
  CHECK(error_of(folder, masks_in(folder), "task: segmentation, class_weights: balanced")
            .ends_with("model.class_weights is balanced, which counts the samples of each class, and a mask "
                       "has many classes; list the weights"));
  CHECK(
      error_of(folder, masks_in(folder) + ", augmentation: [{erasing: {}}]")
          .find("data.augmentation cannot be used: erasing is an operation that masks of classes cannot "
                "follow; leave it out, or choose from random_resized_crop, random_crop, center_crop, "
                "horizontal_flip, vertical_flip, rotation, affine, color_jitter, grayscale, gaussian_blur") !=
      std::string::npos);
  CHECK(error_of(folder, ", targets: none, classes: 2")
            .find("data.targets needs the folder none/train, which is not there") != std::string::npos);
  for (const std::string key : {"folds", "validation_share"})
    CHECK(error_of(folder,
                   masks_in(folder) + ", " + key + (key == "folds" ? ": 2" : ": 0.5") + ", split_seed: 3")
              .ends_with("data." + key +
                         " has no effect here, because images with data.targets are in the folders train and "
                         "val, which divide them; remove it"));
  CHECK(error_of(folder, masks_in(folder) + ", sampling: balanced")
            .find("data.sampling is balanced, which draws classes, and model.task is segmentation") !=
        std::string::npos);
  CHECK(
      user_error([] {
        open_data(Config::parse("model: {task: segmentation}\ndata: {format: csv, path: x}\n", "x.yaml"));
      })
          .ends_with("data.format is csv, and model.task is segmentation, which needs folders of images and "
                     "masks; set it to image_folder"));
}

}  // namespace plexaura::testing::open_image_pairs_test
