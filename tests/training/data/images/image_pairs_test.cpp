#include "training/data/images/image_pairs.h"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <memory>
#include <utility>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/augmentation/operations.h"

namespace plexaura::testing::image_pairs_test {

namespace {

using namespace augmentation;

constexpr std::int64_t width = 6;
constexpr std::int64_t height = 4;

// An image whose pixel i is the colour (10 i, i, 0), and a mask whose pixel i has the class i.
Image numbered_image() {
  Image image{width, height, {}};
  for (int i = 0; i < width * height; ++i)
    for (const int value : {10 * i, i, 0}) image.pixels.push_back(static_cast<std::uint8_t>(value));
  return image;
}

std::vector<std::uint8_t> numbered_mask() {
  std::vector<std::uint8_t> classes;
  for (int i = 0; i < width * height; ++i) classes.push_back(static_cast<std::uint8_t>(i));
  return classes;
}

void write_pair(const TemporaryFolder& folder, const std::string& name = "a") {
  folder.write("images/" + name + ".png", encode_png(numbered_image()));
  folder.write("masks/" + name + ".png", encode_grey_png(width, height, numbered_mask()));
}

struct Read {
  std::vector<std::uint8_t> sample;
  std::vector<std::uint8_t> target;
};

Read read(const ImagePairs& pairs, std::int64_t index, const SampleContext& context = {}) {
  const std::vector<Field> fields = pairs.fields();
  Read found;
  found.sample.resize(static_cast<std::size_t>(fields[0].type.bytes()));
  found.target.resize(static_cast<std::size_t>(fields[1].type.bytes()));
  pairs.read_fields(index, context,
                    std::array{std::as_writable_bytes(std::span(found.sample)),
                               std::as_writable_bytes(std::span(found.target))});
  return found;
}

ImageFolderOptions options_with(ImageOperations operations, std::int64_t size = 4) {
  return {.image_size = size, .augment = true, .operations = std::move(operations), .resize_size = size};
}

// An operation that moves pixels and does not move those of masks.
class Unfinished final : public ImageOperation {
 public:
  explicit Unfinished(bool has_rule) : has_rule_(has_rule) {}
  void apply(Image& image, Random& /*random*/) const override { std::ranges::reverse(image.pixels); }
  MaskRule mask_rule() const override { return has_rule_ ? MaskRule::moved : ImageOperation::mask_rule(); }
  std::string_view name() const override { return "unfinished"; }

 private:
  bool has_rule_;
};

const MaskOptions with_ignored{.classes = 24, .ignored = 255};

std::string error_of(const TemporaryFolder& folder, const ImageFolderOptions& options = {.image_size = 4},
                     const MaskOptions& mask = with_ignored) {
  return user_error([&] { read(ImagePairs(folder / "images", folder / "masks", options, mask), 0); });
}

}  // namespace

TEST_CASE("the target of an image has its name, in the same folder below the folder of targets") {
  const TemporaryFolder folder;
  for (const char* name : {"b", "a", "deep/c"}) write_pair(folder, name);
  folder.write("images/notes.txt", "no image");
  folder.write("masks/unused.png", "not read");
  const ImagePairs pairs(folder / "images", folder / "masks", {.image_size = 4}, with_ignored);
  CHECK(pairs.size() == 3);
  CHECK(pairs.name(0) == "a.png, a.png");
  CHECK(pairs.name(2) == "deep/c.png, deep/c.png");
  CHECK(pairs.ignored().others == 1);
  CHECK(to_string(pairs.fields()) == "uint8[3,4,4] samples, uint8[4,4] targets");
  CHECK(to_string(ImagePairs(folder / "images", folder / "masks", {.image_size = 4}).fields()) ==
        "uint8[3,4,4] samples, uint8[3,4,4] targets");
  const ImagePairs kept(pairs, std::array<std::int64_t, 1>{1});
  CHECK(kept.size() == 1);
  CHECK(kept.name(0) == "b.png, b.png");
  CHECK(to_string(kept.fields()) == to_string(pairs.fields()));
}

TEST_CASE("a pixel and its class stay together in crops, flips and turns") {
  const TemporaryFolder folder;
  write_pair(folder);
  const auto crop = std::make_shared<RandomCrop>(RandomCrop::Options{.size = 4, .padding = 1});
  for (const ImageOperations& operations :
       {ImageOperations{crop}, ImageOperations{crop, std::make_shared<HorizontalFlip>(0.5)},
        ImageOperations{crop, std::make_shared<VerticalFlip>(0.5)},
        ImageOperations{crop, std::make_shared<RandomRotation>(RandomRotation::Options{.degrees = 90})},
        ImageOperations{crop, std::make_shared<RandomAffine>(RandomAffine::Options{
                                  .degrees = 30, .translate = {0.3, 0.3}, .shear_x = {-20, 20}})}}) {
    const ImagePairs pairs(folder / "images", folder / "masks", options_with(operations), with_ignored);
    int outside = 0;
    int moved = 0;
    const Read first = read(pairs, 0);
    for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
      const Read found = read(pairs, 0, {.epoch = epoch});
      moved += found.target != first.target ? 1 : 0;
      for (std::size_t i = 0; i < found.target.size(); ++i) {
        outside += found.target[i] == 255 ? 1 : 0;
        CHECK(found.sample[i] == (found.target[i] == 255 ? 0 : 10 * found.target[i]));
      }
    }
    CHECK(moved > 0);
    CHECK(outside > 0);
  }
}

TEST_CASE("a mask is scaled like its image, without numbers between classes") {
  const TemporaryFolder folder;
  Image image{32, 32, {}};
  std::vector<std::uint8_t> classes;
  for (int i = 0; i < 32 * 32; ++i) {
    const bool is_right = i % 32 >= 16;
    for (int channel = 0; channel < 3; ++channel) image.pixels.push_back(is_right ? 200 : 0);
    classes.push_back(is_right ? 7 : 1);
  }
  folder.write("images/a.png", encode_png(image));
  folder.write("masks/a.png", encode_grey_png(32, 32, classes));
  const auto check = [&](const ImageFolderOptions& options) {
    const ImagePairs pairs(folder / "images", folder / "masks", options, MaskOptions{.classes = 8});
    for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
      const Read found = read(pairs, 0, {.epoch = epoch});
      for (std::size_t i = 0; i < found.target.size(); ++i) {
        CHECK((found.target[i] == 1 || found.target[i] == 7));
        // Only a pixel on the edge may be nearer to the other side.
        if (found.sample[i] < 60) CHECK(found.target[i] == 1);
        if (found.sample[i] > 140) CHECK(found.target[i] == 7);
      }
    }
  };
  check({.image_size = 12});
  check({.image_size = 12, .augment = true, .min_crop_scale = 0.3});
  check(options_with({std::make_shared<RandomResizedCrop>(RandomResizedCrop::Options{.size = 12})}, 12));
  check(options_with(
      {std::make_shared<ResizedCentreCrop>(ResizedCentreCrop::Options{.size = 12, .resize = 14})}, 12));
  check(options_with({std::make_shared<HorizontalFlip>(0.5)}, 12));
}

TEST_CASE("images as targets get the augmentation of their images") {
  const TemporaryFolder folder;
  folder.write("images/a.png", encode_png(numbered_image()));
  folder.write("masks/a.png", encode_png(numbered_image()));
  const ImagePairs pairs(
      folder / "images", folder / "masks",
      options_with({std::make_shared<RandomRotation>(RandomRotation::Options{.degrees = 90}),
                    std::make_shared<ColorJitter>(ColorJitter::Options{.brightness = 0.5}),
                    std::make_shared<RandomErasing>(RandomErasing::Options{.p = 1})}));
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    const Read found = read(pairs, 0, {.epoch = epoch});
    CHECK(found.sample == found.target);
  }
}

TEST_CASE("pairs that do not fit are refused, with the file") {
  const TemporaryFolder folder;
  write_pair(folder);
  const std::string image = (folder / "images/a.png").string();
  const std::string mask = (folder / "masks/a.png").string();
  CHECK(error_of(folder, {.image_size = 4}, {.classes = 20}) ==
        mask +
            ": pixel 2 of row 3 has the number 20 and there are 20 classes, from 0 to 19; correct the mask, "
            "set data.classes, or set model.ignored_class to a number that does not count");
  folder.write("masks/a.png", encode_grey_png(height, width, numbered_mask()));
  CHECK(error_of(folder) ==
        image + ": has 6x4 pixels, and its target " + mask + " has 4x6; give both the same size");
  folder.write("masks/a.png", encode_png(numbered_image()));
  CHECK(error_of(folder) == mask +
                                ": the mask cannot be read: its pixels are colours or transparent, and not "
                                "numbers of classes; give a PNG file whose grey values of at most 8 bits, "
                                "or whose indices of a palette, are the numbers of the classes");
  folder.write("masks/a.jpg", encode_jpeg(numbered_image()));
  CHECK(error_of(folder) ==
        image + ": has the targets " + (folder / "masks/a.jpg").string() + " and a.png; remove one of them");
  std::filesystem::remove(folder / "masks/a.png");
  CHECK(error_of(folder).find("the mask cannot be read: it is no PNG file") != std::string::npos);
  std::filesystem::remove(folder / "masks/a.jpg");
  CHECK(error_of(folder) == image + ": has no target; add " + mask + ", or remove the image");
  write_pair(folder);
  folder.write("images/a.jpg", encode_jpeg(numbered_image()));
  CHECK(error_of(folder).ends_with("has the same target as a.jpg; give one of them another name"));
  CHECK(user_error([&] {
          ImagePairs(folder / "none", folder / "masks", {});
        }).starts_with((folder / "none").string() + ": cannot be listed"));
}

TEST_CASE("operations that masks cannot follow are refused") {
  const TemporaryFolder folder;
  write_pair(folder);
  CHECK(error_of(folder, options_with({std::make_shared<RandomErasing>(RandomErasing::Options{})}))
            .ends_with("erasing is an operation that masks of classes cannot follow; leave it out"));
  CHECK(error_of(folder,
                 options_with({std::make_shared<RandomRotation>(RandomRotation::Options{.degrees = 1})}),
                 {.classes = 24}) ==
        "after rotation, pixels from outside of an image have no class; set "
        "model.ignored_class to the number that they get, for example 255");
}

TEST_CASE("masks do not stay as they are where an operation of one's own may move pixels") {
  const TemporaryFolder folder;
  write_pair(folder);
  CHECK(error_of(folder, options_with({std::make_shared<Unfinished>(false)}))
            .starts_with("unfinished is an operation that masks of classes cannot follow"));
  CHECK(error_of(folder, options_with({std::make_shared<Unfinished>(true)})) ==
        "unfinished: the operation has no apply_to_mask(); override it, or let mask_rule() return refused");
}

TEST_CASE("operations that only change values leave masks as they are") {
  const TemporaryFolder folder;
  write_pair(folder);
  const ImagePairs plain(folder / "images", folder / "masks", {.image_size = 4, .resize_size = 4},
                         with_ignored);
  const ImagePairs changed(
      folder / "images", folder / "masks",
      options_with({std::make_shared<ColorJitter>(ColorJitter::Options{.brightness = 0.5}),
                    std::make_shared<RandomGrayscale>(1),
                    std::make_shared<RandomGaussianBlur>(RandomGaussianBlur::Options{})}),
      with_ignored);
  CHECK(read(changed, 0).target == read(plain, 0).target);
  CHECK(read(changed, 0).sample != read(plain, 0).sample);
}

}  // namespace plexaura::testing::image_pairs_test
