#include "training/data/images/image_folder.h"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <set>
#include <sys/stat.h>

#include "tests/support/error_text.h"
#include "tests/support/no_descriptors.h"
#include "tests/training/data/data_support.h"
#include "training/data/augmentation/operations.h"
#include "training/data/images/crop.h"
#include "training/data/images/image_list.h"
#include "training/data/images/resample.h"
#include "training/data/loader.h"
#include "training/data/sample_reader.h"
#include "training/files/file.h"
#include "training/files/shortage.h"

namespace plexaura::testing::image_folder_test {

namespace {

constexpr std::array<std::uint8_t, 3> red{230, 20, 20};
constexpr std::array<std::uint8_t, 3> blue{20, 20, 230};

std::vector<std::uint8_t> sample_of(const ImageFolderDataset& dataset, std::int64_t index,
                                    const SampleContext& context = {}) {
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(dataset.sample_shape().elements()));
  std::int64_t label = -1;
  dataset.read(index, context, sample, label);
  CHECK(label == dataset.label(index));
  return sample;
}

// Two classes: "cat" with b.jpg and a.JPEG, "dog" with a JPEG that is called .png.
void write_pets(const TemporaryFolder& folder) {
  folder.write("cat/b.jpg", encode_jpeg(testing::two_colours(40, 30, red, blue)));
  folder.write("cat/a.JPEG", encode_jpeg(testing::two_colours(30, 50, blue, red)));
  folder.write("dog/x.png", encode_jpeg(testing::two_colours(300, 20, red, red)));
}

}  // namespace

TEST_CASE("classes are folders, samples are files, both sorted; what is hidden or beside is passed over") {
  const TemporaryFolder folder;
  write_pets(folder);
  folder.write("readme.txt", "no class");
  folder.write(".git/x.jpg", "no class");
  folder.write("cat/.hidden", "not an image");
  folder.write("cat/.more/c.jpg", "not looked at");
  folder.write("beside.jpg", "no class");
  folder.write("cat/Thumbs.db", "not an image");
  folder.write("dog/notes.txt", "nor this");
  folder.write("dog/jpg", "nor this");
  folder.write("dog/empty", "");
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16});
  CHECK(dataset.class_names() == std::vector<std::string>{"cat", "dog"});
  CHECK(dataset.size() == 3);
  CHECK(dataset.sample_shape() == Shape{3, 16, 16});
  CHECK(labels_of(dataset) == std::vector<std::int64_t>{0, 0, 1});
  CHECK(dataset.ignored().others == 4);
  CHECK(dataset.ignored().pictures.empty());
  CHECK(dataset.ignored().beside_classes == 1);
  CHECK(dataset.path(0) == folder / "cat/a.JPEG");
}

// The order is torchvision's: sorted(os.walk(folder)), and the names of each folder sorted.
TEST_CASE("images in folders within a class are read, by the path of their folder") {
  const TemporaryFolder folder;
  write_pets(folder);
  const auto bytes = encode_jpeg(testing::two_colours(20, 20, red, red));
  for (const char* name :
       {"cat/more/a.jpg", "cat/more/deep/x.jpg", "cat/more-still/y.jpg", "eel/only/below/z.jpg"})
    folder.write(name, bytes);
  folder.write("cat/more/notes.txt", "not an image");
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16});
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < dataset.size(); ++i) names.push_back(dataset.name(i));
  CHECK(names == std::vector<std::string>{"cat/a.JPEG", "cat/b.jpg", "cat/more/a.jpg", "cat/more-still/y.jpg",
                                          "cat/more/deep/x.jpg", "dog/x.png", "eel/only/below/z.jpg"});
  CHECK(labels_of(dataset) == std::vector<std::int64_t>{0, 0, 0, 0, 0, 1, 2});
  CHECK(dataset.path(4) == folder / "cat/more/deep/x.jpg");
  CHECK(dataset.ignored().others == 1);
  CHECK(sample_of(dataset, 4) == sample_of(dataset, 6));
}

TEST_CASE("an image that a limit on open files hides does not count as another file" *
          doctest::skip(!can_lack_descriptors)) {
  const TemporaryFolder folder;
  write_pets(folder);
  const ImageList images(folder.path());
  const NoDescriptors none;
  CHECK_THROWS_AS(images.require_image("", "give images"), LimitReached);
}

TEST_CASE("links to folders are followed, and one that has no end is an error") {
  const TemporaryFolder folder;
  write_pets(folder);
  const TemporaryFolder outside;
  outside.write("more/y.jpg", encode_jpeg(testing::two_colours(20, 20, red, red)));
  std::filesystem::create_directory_symlink(outside.path(), folder / "cat/linked");
  CHECK(ImageFolderDataset(folder.path()).name(2) == "cat/linked/more/y.jpg");
  std::filesystem::create_directory_symlink(folder / "cat", outside / "back");
  CHECK(user_error([&] { const ImageFolderDataset dataset(folder.path()); }) ==
        (folder / "cat/linked/back").string() +
            ": is a link to a folder above it, which would have no end; remove the link");
  std::filesystem::remove(outside / "back");
  std::filesystem::create_directory_symlink("/nowhere", folder / "cat/lost");
  CHECK(user_error([&] { const ImageFolderDataset dataset(folder.path()); }) ==
        (folder / "cat/lost").string() + ": is a link that leads nowhere; mend or remove it");
}

TEST_CASE("pictures in other formats are counted by format") {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  write_pets(folder);
  folder.write("cat/1.webp", "RIFF\x10\0\0\0WEBPVP8 "s);
  folder.write("cat/2.webp", "RIFF\x10\0\0\0WEBPVP8 "s);
  folder.write("dog/1.bmp", "BM\x10\0\0\0\0\0\0\0\x36\0\0\0"s);
  folder.write("dog/1.gif", "GIF89a\x10\0\x10\0\0\0"s);
  folder.write("dog/1.tif", "II*\0\x10\0\0\0\0\0\0\0"s);
  folder.write("dog/1.avif",
               "\0\0\0\x1c"
               "ftypavif"s);
  folder.write("dog/BMW", "BMW cars are not read");
  const IgnoredFiles ignored = ImageFolderDataset(folder.path()).ignored();
  CHECK(ignored.pictures ==
        std::map<std::string, std::int64_t>{{"BMP", 1}, {"GIF", 1}, {"HEIF", 1}, {"TIFF", 1}, {"WebP", 2}});
  CHECK(ignored.others == 1);
  folder.write("eel/1.webp", "RIFF\x10\0\0\0WEBPVP8 "s);
  CHECK(contains(
      user_error([&] { const ImageFolderDataset dataset(folder.path()); }),
      "the folder of class 'eel' contains no image (a JPEG or PNG file) but 1 in WebP; add some or "));
}

TEST_CASE("an image is one by its content, whatever it is called") {
  const TemporaryFolder folder;
  write_pets(folder);
  folder.write("eel/image", encode_jpeg(testing::two_colours(20, 20, red, red)));
  folder.write("eel/image.webp.1", encode_jpeg(testing::two_colours(20, 20, blue, blue)));
  folder.write("eel/SOURCE.txt", "found on the beach");
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16});
  CHECK(labels_of(dataset) == std::vector<std::int64_t>{0, 0, 1, 2, 2});
  CHECK(dataset.path(3) == folder / "eel/image");
  CHECK(dataset.ignored().others == 1);
  CHECK(sample_of(dataset, 3)[0] > sample_of(dataset, 4)[0]);  // red
}

TEST_CASE("without augmentation the centre is seen, upright, in every epoch") {
  const TemporaryFolder folder;
  write_pets(folder);
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16});
  CHECK(dataset.sample_dtype() == DType::uint8);
  const auto sample = sample_of(dataset, 1);
  CHECK(std::abs(sample[8 * 16 + 2] - 230) < 12);             // red on the left
  CHECK(std::abs(sample[8 * 16 + 13] - 20) < 12);             // and not on the right
  CHECK(std::abs(sample[2 * 256 + 8 * 16 + 13] - 230) < 12);  // blue is on the right
  CHECK(sample == sample_of(dataset, 1, {7, 9}));
}

// Also if far fewer pixels are needed, for which JPEG could be decoded at a half, a quarter or an eighth of
// its size.
TEST_CASE("a large JPEG is decoded at its full size and then resized") {
  const TemporaryFolder folder;
  Image drawn{600, 400, {}};
  for (std::int64_t y = 0; y < drawn.height; ++y)
    for (std::int64_t x = 0; x < drawn.width; ++x)
      for (const std::int64_t value : {x * y / 5, 3 * x + y, x * x / 9 + 7 * y})
        drawn.pixels.push_back(static_cast<std::uint8_t>(value % 256));
  const auto bytes = encode_jpeg(drawn);
  const Image whole = decode_image(bytes, "large.jpg");
  REQUIRE(whole.width == 600);
  REQUIRE(whole.height == 400);
  const auto file = folder.write("cat/large.jpg", bytes);
  for (const std::int64_t side : {16, 40, 90, 170}) {
    CAPTURE(side);
    const ImageFolderOptions options{.image_size = side};
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(3 * side * side));
    resample(whole, centre_crop({600, 400}, shorter_side_of(options), side), expected);
    CHECK(sample_of(ImageFolderDataset(folder.path(), options), 0) == expected);
    const Tensor alone = read_image(file, options);
    CHECK(std::ranges::equal(alone.as<std::uint8_t>(), expected));
  }
}

TEST_CASE("augmentation is a function of seed, epoch and index, and flips half of all") {
  const TemporaryFolder folder;
  write_pets(folder);
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16, .augment = true});
  const auto sample = sample_of(dataset, 1, {1, 2});
  CHECK(sample == sample_of(dataset, 1, {1, 2}));
  CHECK(sample != sample_of(dataset, 1, {1, 3}));
  CHECK(sample != sample_of(dataset, 1, {2, 2}));
  int red_left = 0;
  int red_right = 0;
  for (std::int64_t epoch = 0; epoch < 400; ++epoch) {
    const auto drawn = sample_of(dataset, 1, {1, epoch});
    red_left += drawn[8UL * 16] > drawn[8UL * 16 + 15] + 60 ? 1 : 0;
    red_right += drawn[8UL * 16] < drawn[8UL * 16 + 15] - 60 ? 1 : 0;
  }
  CHECK(red_left > 100);
  CHECK(red_right > 100);
}

TEST_CASE("a folder that is no data set is refused in a sentence that names it") {
  const TemporaryFolder folder;
  const auto error = [&](const ImageFolderOptions& options = {}) {
    return user_error([&] { const ImageFolderDataset dataset(folder.path(), options); });
  };
  CHECK(contains(error(), "contains no folder"));
  write_pets(folder);
  CHECK(contains(error({.image_size = 0}), "image_size is 0"));
  CHECK(contains(error({.min_crop_scale = 0}), "smallest crop is 0"));
  std::filesystem::create_directory(folder / "eel");
  CHECK(contains(error(), "eel: the folder of class 'eel' contains no image"));
  folder.write("eel/image", "not an image");
  CHECK(contains(error(), "the folder of class 'eel' contains no image"));
  folder.write("eel/notes.jpg", "not an image");
  CHECK(contains(error(), "the folder of class 'eel' contains no image"));
  CHECK(contains(user_error([&] { const ImageFolderDataset dataset(folder / "absent"); }),
                 "/absent: cannot be listed"));
}

TEST_CASE("a broken image and a file that is none are named when they are read") {
  const TemporaryFolder folder;
  write_pets(folder);
  const auto whole = InputFile(folder / "cat/b.jpg").read_all();
  folder.write("cat/c.jpg", std::span(whole).first(whole.size() / 2));
  folder.write("cat/d.jpg", "just text");
  folder.write("cat/e.jpg", "");
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16});
  for (const auto& [index, name] : {std::pair{2, "cat/c.jpg: "}, {3, "cat/d.jpg: "}, {4, "cat/e.jpg: "}})
    CHECK(contains(user_error([&] { sample_of(dataset, index); }), name));

  Loader loader(std::make_shared<ImageFolderDataset>(folder.path(), ImageFolderOptions{.image_size = 16}),
                {.batch_size = 6, .workers = 2, .on_error = OnError::skip});
  CHECK(loader.next().micro_batches.front().fields[1].elements() == 6);
  CHECK(loader.skipped().size() == 3);
}

TEST_CASE(
    "what is called an image and is a folder, a pipe or a link that leads nowhere is an error when read") {
  const TemporaryFolder folder;
  write_pets(folder);
  std::filesystem::create_symlink("absent", folder / "cat/c.jpg");
  std::filesystem::create_directory(folder / "cat/d.jpg");
  REQUIRE(mkfifo((folder / "cat/e.png").c_str(), 0600) == 0);
  std::filesystem::create_symlink("f.jpg", folder / "cat/f.jpg");
  const auto dataset =
      std::make_shared<ImageFolderDataset>(folder.path(), ImageFolderOptions{.image_size = 16});
  REQUIRE(dataset->size() == 7);
  CHECK(dataset->ignored().others == 0);
  for (const auto& [index, name] :
       {std::pair{2, "cat/c.jpg"}, {3, "cat/d.jpg"}, {4, "cat/e.png"}, {5, "cat/f.jpg"}})
    CHECK(contains(user_error([&] { sample_of(*dataset, index); }), name));
  Loader loader(dataset, {.batch_size = 7, .on_error = OnError::skip});
  loader.next();
  CHECK(loader.skipped().size() == 4);
}

TEST_CASE("a class that is a link that leads nowhere is an error") {
  const TemporaryFolder folder;
  write_pets(folder);
  std::filesystem::create_directory_symlink("cat", folder / "eel");
  CHECK(ImageFolderDataset(folder.path()).class_names().size() == 3);
  std::filesystem::create_directory_symlink("absent", folder / "fox");
  CHECK(user_error([&] { const ImageFolderDataset dataset(folder.path()); }) ==
        (folder / "fox").string() + ": is a link that leads nowhere; mend or remove it");
}

TEST_CASE("what is not the image's fault is not held against it" *
          doctest::skip(!testing::can_lack_descriptors)) {
  const TemporaryFolder folder;
  write_pets(folder);
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16});
  const BatchPlan plan{dataset.size(), dataset.size()};
  SampleReader reader(dataset, plan, 1, OnError::skip, true);
  const std::vector<std::int64_t> order{0, 1, 2};
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(dataset.sample_shape().elements()));
  std::int64_t label = -1;
  const std::span<std::byte> values[] = {std::as_writable_bytes(std::span(sample)),
                                         std::as_writable_bytes(std::span(&label, 1))};
  const auto read = [&] { reader.read({order}, values); };
  {
    const testing::NoDescriptors none;
    CHECK(contains(testing::user_error(read), "Too many open files; raise the limit"));
  }
  CHECK(reader.skipped().empty());
  std::filesystem::remove(dataset.path(0));
  read();
  CHECK(reader.skipped().size() == 1);
}

TEST_CASE("a class whose name is not UTF-8 is refused with its folder") {
  const TemporaryFolder folder;
  write_pets(folder);
  folder.write("caf\xe9/x.jpg", encode_jpeg(testing::two_colours(20, 20, red, red)));
  CHECK(
      contains(user_error([&] { ImageFolderDataset{folder.path()}; }),
               "caf\xe9: the name of the folder, which is that of a class, is not UTF-8; rename the folder"));
}

TEST_CASE("training and validation set must have the same classes") {
  const TemporaryFolder train;
  const TemporaryFolder validation;
  write_pets(train);
  write_pets(validation);
  const ImageFolderDataset expected(train.path());
  CHECK_NOTHROW(check_same_classes(expected, "train", ImageFolderDataset(validation.path()), "val"));
  validation.write("eel/x.jpg", encode_jpeg(testing::two_colours(20, 20, red, red)));
  CHECK(contains(user_error([&] {
                   check_same_classes(expected, "train", ImageFolderDataset(validation.path()), "val");
                 }),
                 "train has no class 'eel', which val has; "));
  std::filesystem::remove_all(validation.path() / "eel");
  std::filesystem::remove_all(validation.path() / "dog");
  CHECK(
      contains(user_error([&] {
                 check_same_classes(expected, "train", ImageFolderDataset(validation.path()), "val");
               }),
               "val has no class 'dog', which train has; both sets must have the same classes, so add it or "
               "remove the other"));
}

TEST_CASE("real photographs are all read, and training and validation set agree") {
  const auto data = testing::real_data();
  if (!data) return;
  const auto train = std::make_shared<ImageFolderDataset>(
      *data / "photos/train", ImageFolderOptions{.image_size = 64, .augment = true});
  const auto validation =
      std::make_shared<ImageFolderDataset>(*data / "photos/val", ImageFolderOptions{.image_size = 64});
  check_same_classes(*train, "train", *validation, "val");
  CHECK(train->size() == 400);
  CHECK(validation->size() == 125);
  Loader loader(train, {.batch_size = 64, .workers = 2, .on_error = OnError::skip});
  std::int64_t samples = 0;
  for (bool more = true; more;) {
    const Step step = loader.next();
    samples += step.micro_batches.front().fields[1].elements();
    CHECK(step.micro_batches.front().fields[0].bytes() ==
          static_cast<std::size_t>(3L * 64 * 64 * step.micro_batches.front().samples));
    more = !step.ends_epoch();
  }
  CHECK(samples == 400);
  CHECK(loader.skipped().empty());
}

TEST_CASE("listed operations replace crop and flip, and depend on seed, epoch and index only") {
  const TemporaryFolder folder;
  write_pets(folder);
  const auto pad =
      std::make_shared<augmentation::RandomCrop>(augmentation::RandomCrop::Options{.size = 16, .padding = 8});
  const ImageFolderDataset dataset(folder.path(), {.image_size = 16, .augment = true, .operations = {pad}});
  const auto sample = sample_of(dataset, 1, {3, 4});
  CHECK(sample == sample_of(dataset, 1, {3, 4}));
  CHECK(sample != sample_of(dataset, 1, {3, 5}));
  CHECK(sample != sample_of(dataset, 1, {4, 4}));
  // Padding is black. Validation does not use the operations.
  CHECK(std::ranges::count(sample, 0) > 0);
  const ImageFolderDataset centred(folder.path(), {.image_size = 16, .operations = {pad}});
  CHECK(std::ranges::count(sample_of(centred, 2), 0) == 0);
  CHECK(user_error([&] { ImageFolderDataset(folder.path(), {.image_size = 8, .operations = {pad}}); })
            .ends_with("augmentation produces images of 16 pixels on each side, and image_size is 8; give "
                       "both the same size"));
}

TEST_CASE("operations that keep the size begin with the centre of the image") {
  const TemporaryFolder folder;
  write_pets(folder);
  const auto none = std::make_shared<augmentation::HorizontalFlip>(0);
  const auto flip = std::make_shared<augmentation::HorizontalFlip>(1);
  const ImageFolderDataset centred(folder.path(), {.image_size = 16});
  const ImageFolderDataset kept(folder.path(), {.image_size = 16, .augment = true, .operations = {none}});
  const ImageFolderDataset flipped(folder.path(), {.image_size = 16, .augment = true, .operations = {flip}});
  CHECK(sample_of(kept, 0) == sample_of(centred, 0));
  auto rows = sample_of(flipped, 0);
  for (auto row = rows.begin(); row != rows.end(); row += 16) std::reverse(row, row + 16);
  CHECK(rows == sample_of(centred, 0));
}

TEST_CASE("resize_size is the shorter side before the centre is taken") {
  const TemporaryFolder folder;
  write_pets(folder);
  const ImageFolderDataset whole(folder.path(), {.image_size = 16, .resize_size = 16});
  const Image image = decode_image(InputFile(folder.path() / "cat/b.jpg").read_all(), "b");
  std::vector<std::uint8_t> expected(3 * 16 * 16);
  resample(image, centre_crop({image.width, image.height}, 16, 16), expected);
  CHECK(sample_of(whole, 1) == expected);
  CHECK(user_error([&] {
          ImageFolderDataset(folder.path(), {.image_size = 16, .resize_size = 15});
        }).ends_with("give a resize_size of 16 or more"));
}

}  // namespace plexaura::testing::image_folder_test
