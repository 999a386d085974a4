#include "training/data/shards/shard_writer.h"

#include <array>
#include <doctest/doctest.h>
#include <span>
#include <string>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::shard_writer_test {

namespace {

// Writes samples of one number each.
void write_numbers(const TemporaryFolder& folder, int count, std::uint64_t shard_bytes = 100) {
  ShardWriter writer(folder.path(), "val",
                     {.kind = RecordKind::sample, .sample = {DType::float32, {1}}, .classes = {"a"}},
                     shard_bytes);
  for (int i = 0; i < count; ++i) {
    const std::array number{static_cast<float>(i)};
    writer.add(std::as_bytes(std::span(number)), 0);
  }
  writer.finish();
}

}  // namespace

TEST_CASE("a shard ends before the sample that would make it too long") {
  const TemporaryFolder folder;
  write_numbers(folder, 5, 8);
  CHECK(folder.names() == "val-00000.shard val-00001.shard val-00002.shard val.index ");
  const ShardIndex index = read_shard_index(ByteRange(folder / "val.index"));
  CHECK(index.shards[0].bytes == 8);
  CHECK(index.shards[2].bytes == 4);
  CHECK(index.records[3].shard == 1);
  CHECK(index.records[3].offset == 4);
  for (std::size_t i = 0; i < 3; ++i)
    check_shard_end(ByteRange(folder / shard_name("val", i)), index.shards[i]);
}

TEST_CASE("a sample that is longer than a shard has a shard of its own") {
  const TemporaryFolder folder;
  write_numbers(folder, 2, 1);
  CHECK(folder.names() == "val-00000.shard val-00001.shard val.index ");
}

TEST_CASE("shards are not written without samples") {
  const TemporaryFolder folder;
  CHECK(user_error([&] { write_numbers(folder, 0); }).find("there are no samples to pack") !=
        std::string::npos);
  CHECK(folder.files() == 0);
}

TEST_CASE("a folder is prepared for shards unless it has an index of training samples") {
  const TemporaryFolder folder;
  prepare_shards(folder.path());
  write_numbers(folder, 1);
  prepare_shards(folder.path());
  CHECK(folder.names() == "val-00000.shard ");
  write_text(folder / "train.index", "");
  write_text(folder / "val.index", "");
  CHECK(user_error([&] { prepare_shards(folder.path()); }).find("train.index: is there already") !=
        std::string::npos);
  CHECK(folder.names() == "train.index val-00000.shard val.index ");
}

}  // namespace plexaura::testing::shard_writer_test
