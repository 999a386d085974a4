#include "training/data/shards/sharded_samples.h"

#include <doctest/doctest.h>
#include <filesystem>

#include "tests/training/data/data_support.h"
#include "training/data/shards/shard_writer.h"

namespace plexaura::testing::sharded_samples_test {

namespace {

namespace fs = std::filesystem;

// Packs rows [i, 10 * i] with the label i % 2, two in a shard.
void pack_rows(const fs::path& folder, std::int64_t count, float first = 0) {
  ShardWriter writer(folder, "train",
                     {.kind = RecordKind::sample, .sample = {DType::float32, {2}}, .classes = {"a", "b"}},
                     17);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::array row{first + static_cast<float>(i), 10 * static_cast<float>(i)};
    writer.add(std::as_bytes(std::span(row)), i % 2);
  }
  writer.finish();
}

std::string error_of_opening(const TemporaryFolder& folder) {
  return user_error([&] { ShardFiles(folder.path(), "train"); });
}

void change_byte(const fs::path& path, std::size_t at) {
  std::string text = read_text(path);
  text[at] = static_cast<char>(text[at] ^ 1);
  write_text(path, text);
}

}  // namespace

TEST_CASE("samples are read from their shards in any order") {
  const TemporaryFolder folder;
  pack_rows(folder.path(), 5);
  CHECK(folder.names() == "train-00000.shard train-00001.shard train-00002.shard train.index ");
  const ShardedSamples<float> samples(std::make_shared<ShardFiles>(folder.path(), "train"));
  CHECK(samples.size() == 5);
  CHECK(labels_of(samples) == std::vector<std::int64_t>{0, 1, 0, 1, 0});
  for (const std::int64_t i : {4, 0, 3, 1, 2}) {
    std::array<float, 2> row{};
    std::int64_t label = -1;
    samples.read(i, {}, row, label);
    CHECK(row == std::array{static_cast<float>(i), 10 * static_cast<float>(i)});
    CHECK(label == i % 2);
  }
}

TEST_CASE("images of shards are the samples of the folder") {
  const TemporaryFolder folder;
  folder.write("train/cat/a.jpg", encode_jpeg(two_colours(40, 30, {230, 20, 20}, {20, 20, 230})));
  folder.write("train/dog/b.jpg", encode_jpeg(two_colours(20, 50, {20, 230, 20}, {20, 20, 20})));
  const ImageFolderOptions options{.image_size = 16, .augment = true};
  const ImageFolderDataset images(folder / "train", options);
  ShardWriter writer(folder.path(), "train",
                     {.kind = RecordKind::image_file, .classes = images.class_names()}, 1000);
  for (std::int64_t i = 0; i < images.size(); ++i) {
    const std::vector<std::uint8_t> file = InputFile(images.path(i)).read_all();
    writer.add(std::as_bytes(std::span(file)), images.label(i));
  }
  writer.finish();
  const ShardedImages packed(std::make_shared<ShardFiles>(folder.path(), "train"), options);
  CHECK(packed.class_names() == images.class_names());
  for (std::int64_t i = 0; i < images.size(); ++i)
    for (const std::int64_t epoch : {0, 1}) {
      std::vector<std::uint8_t> expected(3 * 16 * 16);
      std::vector<std::uint8_t> found(expected.size());
      std::int64_t label = -1;
      images.read(i, {.seed = 7, .epoch = epoch}, expected, label);
      packed.read(i, {.seed = 7, .epoch = epoch}, found, label);
      CHECK(found == expected);
      CHECK(label == i);
    }
}

TEST_CASE("a damaged record is refused with its shard, its number and its offset") {
  const TemporaryFolder folder;
  pack_rows(folder.path(), 5);
  change_byte(folder / "train-00001.shard", 9);
  const ShardFiles files(folder.path(), "train");
  std::array<float, 2> row{};
  const auto into = std::as_writable_bytes(std::span(row));
  files.read(2, into);
  CHECK(user_error([&] { files.read(3, into); })
            .ends_with(
                "train-00001.shard: record 3 (offset 8): its bytes do not have its checksum; pack the data "
                "again with tools/pack, or fetch the file again"));
}

TEST_CASE("missing, cut and foreign shards are refused") {
  const TemporaryFolder folder;
  pack_rows(folder.path(), 5);
  const TemporaryFolder other;
  pack_rows(other.path(), 5, 100);
  CHECK(ShardFiles(folder.path(), "train").identity() != ShardFiles(other.path(), "train").identity());
  const fs::path shard = folder / "train-00001.shard";
  const std::string whole = read_text(shard);
  write_text(shard, whole.substr(0, whole.size() - 1));
  CHECK(contains(error_of_opening(folder), "train-00001.shard: has 39 bytes, but the index expects 40"));
  fs::remove(shard);
  CHECK(contains(error_of_opening(folder), "train-00001.shard"));
  fs::copy_file(other / "train-00001.shard", shard);
  CHECK(contains(error_of_opening(folder), "train-00001.shard: belongs to another index"));
  fs::remove(folder / "train.index");
  CHECK(contains(error_of_opening(folder), "train.index"));
  CHECK(contains(user_error([&] { ShardedImages(std::make_shared<ShardFiles>(other.path(), "train"), {}); }),
                 "has samples and no image files"));
}

}  // namespace plexaura::testing::sharded_samples_test
