#include "training/data/shards/shard_index.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"

namespace plexaura::testing::shard_index_test {

namespace {

ShardIndex index_of_rows() {
  return {.contents = {.kind = RecordKind::sample,
                       .sample = {DType::float32, {2}},
                       .classes = {"a", "ä\"b"},
                       .columns = {"x", "y"},
                       .targets = {}},
          .shards = {{.bytes = 16, .identity = 5}, {.bytes = 8, .identity = ~std::uint64_t{0}}},
          .records = {{.offset = 0, .bytes = 8, .checksum = 7, .label = 0, .shard = 0},
                      {.offset = 8, .bytes = 8, .checksum = 8, .label = 1, .shard = 0},
                      {.offset = 0, .bytes = 8, .checksum = 9, .label = 1, .shard = 1}}};
}

ShardIndex read(const std::string& text) {
  return read_shard_index(ByteRange("a/train.index", std::vector<std::uint8_t>(text.begin(), text.end())));
}

std::string error_of(const std::string& text) {
  return user_error([&] { read(text); });
}

// Returns the error of an index that was changed.
template <class Change>
std::string error_with(const Change& change) {
  ShardIndex index = index_of_rows();
  change(index);
  return error_of(write_shard_index(index));
}

// Replaces the checksum at the end by that of the bytes before it.
std::string with_checksum(std::string text) {
  text.resize(text.size() - 4);
  const std::uint32_t sum = record_checksum(std::as_bytes(std::span(text)));
  return text.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
}

}  // namespace

TEST_CASE("an index is read as it was written") {
  const ShardIndex read_index = read(write_shard_index(index_of_rows()));
  CHECK(read_index.contents == index_of_rows().contents);
  CHECK(read_index.shards[1].identity == ~std::uint64_t{0});
  CHECK(read_index.records.size() == 3);
  CHECK(read_index.records[1].offset == 8);
  CHECK(read_index.records[2].checksum == 9);
  CHECK(read_index.records[2].shard == 1);
}

TEST_CASE("a damaged index is refused in a sentence with its name") {
  const std::string whole = write_shard_index(index_of_rows());
  CHECK(error_of("") ==
        "a/train.index: has only 0 bytes; pack the data again with tools/pack, or fetch the file again");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 3)
    CHECK(!error_of(whole.substr(0, bytes)).empty());
  CHECK(contains(error_of("x" + whole), "does not begin as an index"));
  for (const std::size_t at : {20, 100, 300}) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK(contains(error_of(changed), "its bytes do not have its checksum"));
  }
  std::string newer = whole;
  newer[8] = 2;
  CHECK(contains(error_of(newer), "has version 2 of the format, and this program reads version 1"));
  std::string long_header = whole;
  long_header[14] = 1;
  CHECK(contains(error_of(with_checksum(long_header)), "ends within its header"));
  std::string no_json = whole;
  no_json[16] = '[';
  CHECK(contains(error_of(with_checksum(no_json)), "its header is not JSON"));
}

TEST_CASE("an index whose parts do not fit each other is refused") {
  CHECK(contains(error_with([](auto& index) { index.records.clear(); }), "counts 0 samples"));
  CHECK(contains(error_with([](auto& index) { index.records[2].shard = 2; }),
                 "its record 2 is in a shard that"));
  CHECK(contains(error_with([](auto& index) { index.records[1].offset = 9; }),
                 "its record 1 is beyond its shard"));
  CHECK(contains(error_with([](auto& index) { index.records[1].offset = ~std::uint64_t{0}; }),
                 "is beyond its shard"));
  CHECK(contains(error_with([](auto& index) { index.records[0].label = 2; }), "has a label without a class"));
  CHECK(contains(error_with([](auto& index) { index.records[0].bytes = 4; }),
                 "has another size than a sample"));
  CHECK(contains(error_with([](auto& index) { index.contents.classes.clear(); }), "it has no class"));
  CHECK(contains(error_with([](auto& index) { index.contents.columns.pop_back(); }),
                 "are no rows of 1 numbers"));
  CHECK(contains(error_with([](auto& index) { index.contents.sample.shape = Shape{std::int64_t{1} << 40}; }),
                 "an impossible shape"));
  CHECK(contains(error_with([](auto& index) { index.contents.sample.dtype = DType::float64; }),
                 "neither uint8 nor float32"));
}

TEST_CASE("the end of a shard names its index") {
  const ShardFile expected{.bytes = 3, .identity = 5};
  const auto error = [&](const std::string& text) {
    return user_error([&] {
      check_shard_end(ByteRange("a/train-00000.shard", std::vector<std::uint8_t>(text.begin(), text.end())),
                      expected);
    });
  };
  CHECK(error("abc" + write_shard_end(5)).empty());
  CHECK(contains(error("abc" + write_shard_end(6)), "train-00000.shard: belongs to another index"));
  CHECK(contains(error("ab" + write_shard_end(5)), "has 26 bytes, but the index expects 27"));
  CHECK(contains(error("abc" + std::string(24, 'x')), "does not end as a shard"));
  CHECK(contains(error(""), "has 0 bytes, but the index expects 27"));
}

}  // namespace plexaura::testing::shard_index_test
