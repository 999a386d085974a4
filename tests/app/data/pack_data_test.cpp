#include "app/data/pack_data.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "tests/app/options/read_configuration.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/data/arrays/npy_text.h"
#include "training/data/images/image.h"

namespace plexaura::testing::pack_data_test {

namespace {

std::string configuration(const std::string& format, const std::filesystem::path& path,
                          const std::string& keys, const std::string& model) {
  return fmt::format("model: {}\ndata: {{format: {}, path: {}{}}}\n", model, format, path.string(), keys);
}

RunData open(const std::string& format, const std::filesystem::path& path, const std::string& keys = "",
             const std::string& model = "{}") {
  const Config config = Config::parse(configuration(format, path, keys, model), "test.yaml");
  RunData data = open_data(config);
  config.check_all_used();
  return data;
}

std::string pack(const std::string& format, const std::filesystem::path& path, PackOptions options,
                 const std::string& keys = "", const std::string& model = "{}") {
  std::filesystem::create_directories(options.folder);
  return pack_data(Config::parse(configuration(format, path, keys, model), "test.yaml"), options);
}

// Returns the bytes of all fields of all samples.
std::vector<std::vector<std::byte>> samples_of(const SampleSource& source) {
  std::vector<std::vector<std::byte>> all;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    std::vector<std::vector<std::byte>> fields;
    for (const Field& field : source.fields())
      fields.emplace_back(static_cast<std::size_t>(field.type.bytes()));
    const std::vector<std::span<std::byte>> places(fields.begin(), fields.end());
    source.read_fields(i, {.seed = 3, .epoch = 1, .partner = 0}, places);
    all.insert(all.end(), fields.begin(), fields.end());
  }
  return all;
}

void check_same(const RunData& packed, const RunData& plain) {
  CHECK(samples_of(*packed.train) == samples_of(*plain.train));
  CHECK(samples_of(*packed.validation) == samples_of(*plain.validation));
  CHECK(packed.trained == plain.trained);
  CHECK(packed.preparation == plain.preparation);
  CHECK(packed.pixels.mean == plain.pixels.mean);
}

}  // namespace

TEST_CASE("a table, arrays and images are the same samples when they are packed") {
  const TemporaryFolder folder;
  write_text(folder / "t.csv", "x,y,kind\n1,5,a\n2,6,b\n3,7,a\n4,8,b\n5,9,a\n");
  CHECK(contains(pack("csv", folder / "t.csv", {.folder = folder / "table"}),
                 "train.index: 5 samples, 1 shards, 40 bytes\n"));
  check_same(open("shards", folder / "table", ", validation_share: 0.4"),
             open("csv", folder / "t.csv", ", validation_share: 0.4"));
  write_images(folder / "images");
  pack("image_folder", folder / "images", {.folder = folder / "packed"});
  check_same(open("shards", folder / "packed", ", image_size: 8"),
             open("image_folder", folder / "images", ", image_size: 8"));
  folder.write("x_train.npy", npy_of<float>("<f4", "(2, 2)", {1, 2, 3, 4}));
  folder.write("y_train.npy", npy_of<float>("<f4", "(2,)", {1, 0}));
  const std::string targets = "{task: multi_label}";
  pack("npy", folder.path(), {.folder = folder / "rows"}, "", targets);
  check_same(open("shards", folder / "rows", ", validation_share: 0", targets),
             open("npy", folder.path(), ", validation_share: 0", targets));
}

TEST_CASE("weights are not used with columns in another order") {
  const TemporaryFolder folder;
  write_text(folder / "xy.csv", "x,y,kind\n1,5,a\n2,6,b\n3,7,a\n4,8,b\n");
  write_text(folder / "yx.csv", "y,x,kind\n5,1,a\n6,2,b\n7,3,a\n8,4,b\n");
  pack("csv", folder / "xy.csv", {.folder = folder / "xy"});
  pack("csv", folder / "yx.csv", {.folder = folder / "yx"});
  const RunData trained = open("shards", folder / "xy", ", validation_share: 0");
  const Config config = Config::parse(
      fmt::format("data: {{format: shards, path: {}, validation_share: 1}}\n", (folder / "yx").string()),
      "test.yaml");
  CHECK(contains(user_error([&] { open_data(config, trained.trained); }),
                 "data.path has the column 'y' where the training had 'x'"));
}

TEST_CASE("images are packed smaller, or as samples") {
  const TemporaryFolder folder;
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/b/1.jpg"}) {
    Image image{60, 30, std::vector<std::uint8_t>(60 * 30 * 3, 100)};
    folder.write(std::string("images/") + name, encode_jpeg(image));
  }
  pack("image_folder", folder / "images", {.folder = folder / "small", .resize = 10});
  const std::string shard = read_text(folder / "small/train-00000.shard");
  const Image image =
      decode_image({reinterpret_cast<const std::uint8_t*>(shard.data()), shard.size()}, "shard");
  CHECK(image.width == 20);
  CHECK(image.height == 10);
  pack("image_folder", folder / "images", {.folder = folder / "pixels", .pixels = 8});
  const RunData plain = open("image_folder", folder / "images", ", image_size: 8, augment: false");
  CHECK(samples_of(*open("shards", folder / "pixels").train) == samples_of(*plain.train));
}

namespace {

void damage(const std::filesystem::path& file) {
  std::string bytes = read_text(file);
  bytes[1] = static_cast<char>(bytes[1] ^ 1);
  write_text(file, bytes);
}

}  // namespace

TEST_CASE("damaged rows are left out while columns are measured if data.on_error is skip") {
  const TemporaryFolder folder;
  const auto open_packed = [&](const std::string& name, const std::string& keys, const std::string& model) {
    return open_data(Config::parse(
        configuration("shards", folder / name, ", validation_share: 0" + keys, model), "test.yaml"));
  };
  write_text(folder / "t.csv", "x,kind\n90,a\n2,b\n4,a\n");
  pack("csv", folder / "t.csv", {.folder = folder / "table"});
  damage(folder / "table/train-00000.shard");
  CHECK(contains(user_error([&] { open_packed("table", "", "{}"); }), "record 0 (offset 0)"));
  CHECK(open_packed("table", ", on_error: skip", "{}").trained.scale.mean == std::vector<float>{3});
  // The labels of several targets are checked at the beginning, too.
  write_text(folder / "m.csv", "x,y\n90,1\n2,0\n4,1\n");
  pack("csv", folder / "m.csv", {.folder = folder / "many"}, ", targets: [y]", "{task: multi_label}");
  damage(folder / "many/train-00000.shard");
  CHECK(contains(user_error([&] { open_packed("many", "", "{task: multi_label}"); }), "record 0 (offset 0)"));
  CHECK(open_packed("many", ", on_error: skip", "{task: multi_label}").trained.scale.mean ==
        std::vector<float>{3});
}

TEST_CASE("images of shards and arrays are mixed, and other samples are not") {
  const TemporaryFolder folder;
  const std::string mix = ", mixup_alpha: 0.2, cutmix_alpha: 1";
  write_images(folder / "images");
  pack("image_folder", folder / "images", {.folder = folder / "packed"});
  check_same(open("shards", folder / "packed", ", image_size: 8" + mix),
             open("image_folder", folder / "images", ", image_size: 8" + mix));
  std::string pixels(4 * 6 * 6 * 3, '\0');
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i * 7);
  folder.write("x_train.npy", npy_text("'|u1'", "(4, 6, 6, 3)", pixels));
  folder.write("y_train.npy", npy_of<std::uint8_t>("|u1", "(4,)", {1, 0, 1, 0}));
  pack("npy", folder.path(), {.folder = folder / "arrays"}, ", channels: last");
  const std::string scale = ", validation_share: 0.5, mean: ";
  const RunData packed = open("shards", folder / "arrays", scale + "[0, 0, 0], stddev: [1, 1, 1]" + mix);
  const RunData plain = open("npy", folder.path(), scale + "0, channels: last" + mix);
  CHECK(samples_of(*packed.train) == samples_of(*plain.train));
  CHECK(samples_of(*packed.train) != samples_of(*open("npy", folder.path(), ", channels: last").train));
  folder.write("x_train.npy", npy_of<float>("<f4", "(4, 2)", {1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(contains(
      user_error([&] { open("npy", folder.path(), ", mixup_alpha: 0.2"); }),
      "data.mixup_alpha has no effect here, because the samples in data.path are not images of bytes"));
  write_text(folder / "t.csv", "x,kind\n1,a\n2,b\n");
  pack("csv", folder / "t.csv", {.folder = folder / "table"});
  CHECK(contains(
      user_error([&] { open("shards", folder / "table", ", validation_share: 0, cutmix_alpha: 1"); }),
      "data.cutmix_alpha has no effect here, because the samples in data.path are not images of bytes"));
}

TEST_CASE("keys without effect on shards and data that is not packed are refused") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_images(folder / "images");
  write_text(folder / "t.csv", "x,kind\n1,a\n2,b\n");
  pack("image_folder", folder / "images", {.folder = folder / "packed"});
  pack("csv", folder / "t.csv", {.folder = folder / "table"});
  const auto refusal = [&](const std::string& name, const std::string& keys,
                           const std::string& model = "{}") {
    return user_error([&] { open("shards", folder / name, keys, model); });
  };
  CHECK(contains(refusal("packed", ", standardise: true"),
                 "data.standardise has no effect here, because the shards"));
  CHECK(contains(refusal("table", ", image_size: 8"),
                 "data.image_size has no effect here, because the shards"));
  CHECK(contains(refusal("table", ", mean: [1, 2, 3]"), "data.mean has no effect here"));
  CHECK(contains(refusal("table", "", "{task: regression}"),
                 "has shards of samples with classes, and model.task is"));
  CHECK(contains(user_error([&] { pack("csv", folder / "t.csv", {.folder = folder / "x", .pixels = 8}); }),
                 "--resize and --pixels are for image_folder"));
  CHECK(contains(user_error([&] { pack("idx", folder / "digits", {.folder = folder / "x"}); }),
                 "is not packed"));
  CHECK(contains(user_error([&] { pack("idx", folder / "digits", {.folder = folder / "x"}, ", limit: 1"); }),
                 "is not packed"));
  for (const char* key : {"mixup_alpha: 1", "cutmix_alpha: 1", "noise: 0", "sampling: balanced"}) {
    CAPTURE(key);
    CHECK(contains(user_error([&] {
                     pack("image_folder", folder / "images", {.folder = folder / "x"},
                          fmt::format(", {}", key));
                   }),
                   " has no effect here, because tools/pack packs all samples as they are"));
  }
  CHECK(user_error([&] {
          pack("image_folder", folder / "images", {.folder = folder / "x"}, ", classes: 2, targets: masks",
               "{task: segmentation}");
        })
            .ends_with(
                "data.targets names the targets of the images, and tools/pack packs images whose folders are "
                "their classes; train on images with targets without packing them"));
  std::filesystem::remove(folder / "packed/val.index");
  CHECK(contains(refusal("packed", ""), "has shards of images without val.index"));
}

}  // namespace plexaura::testing::pack_data_test
