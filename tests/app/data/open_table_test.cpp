#include "app/data/open_table.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "app/data/pack_data.h"
#include "app/data/prediction_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::open_table_test {

namespace {

const std::string table = "id,colour,x,kind\nn1,red,1,a\nn2,blue,2,b\nn3,red,3,a\nn4,blue,6,b\n";
const std::string words = ", categories: [colour], ignore: [id]";

Config config_of(const std::string& format, const std::filesystem::path& path, const std::string& keys) {
  return Config::parse(fmt::format("data: {{format: {}, path: {}{}}}\n", format, path.string(), keys),
                       "test.yaml");
}

RunData open(const std::string& format, const std::filesystem::path& path, const std::string& keys,
             const std::optional<TrainedData>& trained = {}) {
  const Config config = config_of(format, path, keys + ", validation_share: 0");
  RunData data = open_data(config, trained);
  config.check_all_used();
  return data;
}

std::vector<float> row_of(const RunData& data, std::int64_t index) {
  std::vector<float> row(static_cast<std::size_t>(data.sample().shape.elements()));
  std::int64_t label = 0;
  data.train->read_fields(index, {},
                          std::vector<std::span<std::byte>>{std::as_writable_bytes(std::span(row)),
                                                            std::as_writable_bytes(std::span(&label, 1))});
  return row;
}

}  // namespace

TEST_CASE("words become inputs that are not scaled, and are kept with the weights") {
  const TemporaryFolder folder;
  const RunData data = open("csv", folder.write("t.csv", table), words);
  CHECK(data.trained.columns == std::vector<std::string>{"colour=blue", "colour=red", "x"});
  CHECK(data.trained.categories == std::vector<std::string>{"colour"});
  CHECK(data.trained.scale.mean == std::vector<float>{0, 0, 3});
  CHECK(row_of(data, 0)[0] == 0);
  CHECK(row_of(data, 0)[1] == 1);
  CHECK(contains(data.preparation, "; 1 or 0 for each word of colour"));
  CHECK(trained_data_in(to_metadata(data.trained), "w") == data.trained);
  Metadata without = to_metadata(data.trained);
  without.erase("data.column 1");
  without.erase("data.column 0");
  without["data.column 0"] = "0 1 x";
  without.erase("data.column 2");
  CHECK(contains(user_error([&] { trained_data_in(without, "w"); }),
                 "w: its metadata has the column of words 'colour', but none of its words"));
}

TEST_CASE("other tables are evaluated and predicted with the words of the training") {
  const TemporaryFolder folder;
  const RunData trained = open("csv", folder.write("t.csv", table), words);
  // The table has fewer words, another order of columns and no ignored column.
  const RunData other = open("csv", folder.write("other.csv", "kind,x,colour\nb,6,red\na,0,red\n"),
                             words + ", label: kind", trained.trained);
  CHECK(row_of(other, 0)[0] == 0);
  CHECK(row_of(other, 0)[1] == 1);
  CHECK(row_of(other, 0)[2] == row_of(trained, 3)[2]);
  const auto predicted = [&](const std::string& keys, const std::string& text) {
    const std::string file = folder.write("new.csv", text).string();
    const NamedSamples samples =
        prediction_data(config_of("csv", folder.path(), keys), trained.trained)->read_samples(file);
    const std::span<const float> values = samples.samples.as<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  CHECK(predicted(words, "x,colour\n6,blue\n") == row_of(trained, 3));
  CHECK(predicted("", "x,colour\n6,blue\n") == row_of(trained, 3));
  CHECK(contains(user_error([&] { predicted(words, "x,colour\n6,blue\n7,green\n"); }),
                 "new.csv:3:3: 'green' in colour is none of the words of the training: blue, red"));
  CHECK(contains(user_error([&] { predicted(", categories: [x]", "x,colour\n6,blue\n"); }),
                 "data.categories is [x], and the weights are of a model that was trained with [colour]"));
  CHECK(contains(user_error([&] { predicted(", ignore: [colour]", "x,colour\n6,blue\n"); }),
                 "data.ignore names 'colour', which the model takes"));
}

TEST_CASE("the order in which data.categories names the columns of words means nothing") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", table);
  const RunData trained = open("csv", path, ", categories: [id, colour]");
  const RunData used = open("csv", path, ", categories: [colour, id]", trained.trained);
  CHECK(used.trained == trained.trained);
}

TEST_CASE("words are packed into shards as they are read from the table") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", table);
  std::filesystem::create_directories(folder / "packed");
  pack_data(config_of("csv", path, words), {.folder = folder / "packed"});
  const RunData plain = open("csv", path, words);
  const RunData packed = open("shards", folder / "packed", "");
  CHECK(packed.trained == plain.trained);
  for (std::int64_t i = 0; i < 4; ++i) CHECK(row_of(packed, i) == row_of(plain, i));
}

TEST_CASE("keys of columns that do not fit are refused") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", table);
  CHECK(contains(user_error([&] { open("csv", path, ", categories: [colour], ignore: [id, colour]"); }),
                 "data.ignore names 'colour', which data.categories and data.ignore name twice"));
  CHECK(contains(user_error([&] { open("csv", path, ", header: false, categories: [colour]"); }),
                 "data.categories has no effect here, because data.header is false"));
  CHECK(contains(user_error([&] { open("npy", folder.path(), ", ignore: [id]"); }),
                 "data.ignore has no effect here, because data.format is npy"));
}

TEST_CASE("the error for a column that the table lacks has the place of the key that names it") {
  const TemporaryFolder folder;
  const auto path = folder.write("t.csv", table);
  const auto check = [&](const std::string& keys, const std::string& key) {
    const std::string error = user_error([&] { open("csv", path, ", " + keys); });
    CAPTURE(error);
    CHECK(error.starts_with("test.yaml:1:"));
    CHECK(contains(error, fmt::format("data.{} does not fit the table: {}: ", key, path.string())));
  };
  check("categories: [color]", "categories");
  check("categories: [colour], ignore: [number]", "ignore");
  check("categories: [colour], ignore: [id], label: class", "label");
  check("header: false, label: 7", "label");
  const std::string trained = user_error([&] {
    open("csv", folder.write("u.csv", "id,colour,z,kind\nn1,red,1,a\n"), words,
         open("csv", path, words).trained);
  });
  CHECK(trained.ends_with("u.csv: no column is called 'x'; the columns are: id, colour, z, kind"));
  CHECK(!contains(trained, "test.yaml"));
}

TEST_CASE("a stream of rows is prepared by its table") {
  const TemporaryFolder folder;
  const std::string keys = words +
                           ", label: kind, stream: \"printf 'kind,x,id,colour\\nb,5,n9,red\\n'\", "
                           "steps_per_epoch: 3, shuffle_buffer: 2";
  const RunData data = open("csv", folder.write("t.csv", table), keys);
  REQUIRE(data.stream);
  CHECK(data.stream->fields() == data.train->fields());
  CHECK(data.steps_per_epoch == 3);
  CHECK(data.shuffle_buffer == 2);
  CHECK(data.description.starts_with("3 steps in an epoch on the rows of the command `printf "));
  std::vector<float> row(3);
  std::int64_t label = 0;
  const std::vector<std::span<std::byte>> values{std::as_writable_bytes(std::span(row)),
                                                 std::as_writable_bytes(std::span(&label, 1))};
  const auto reader = data.stream->open(0, 1);
  REQUIRE(reader->next(values));
  CHECK(row == std::vector<float>{0, 1, 2 / data.trained.scale.stddev[2]});  // blue, red and x
  CHECK(label == 1);
  CHECK(!reader->next(values));
  const RunData without = open("csv", folder / "t.csv", words);
  CHECK(!without.stream);
  CHECK(without.origin != data.origin);
  // A trained model is used on the table.
  CHECK(!open("csv", folder / "t.csv", keys, data.trained).stream);
}

TEST_CASE("keys that a stream needs or cannot follow are errors") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& keys) {
    return user_error([&] { open("csv", folder.write("t.csv", table), words + ", label: kind" + keys); });
  };
  CHECK(contains(user_error([&] {
                   open("csv", folder.write("t.csv", table), words + ", stream: cat, steps_per_epoch: 3");
                 }),
                 "data.label must name the column"));
  CHECK(contains(error(", stream: cat"), "data.steps_per_epoch is missing"));
  CHECK(contains(error(", steps_per_epoch: 3"), "steps_per_epoch"));
  CHECK(contains(error(", shuffle_buffer: 3"), "shuffle_buffer"));
  CHECK(contains(error(", stream: '', steps_per_epoch: 3"), "is empty; give a command"));
  CHECK(contains(error(", stream: 'cat {ranks}', steps_per_epoch: 3"), "has {ranks} and no {rank}"));
  for (const char* const key : {"limit: 3", "use_fraction: 0.5", "sampling: balanced", "shuffle: false",
                                "workers: 2", "prefetch: 3", "on_error: skip"})
    CHECK(contains(error(fmt::format(", stream: cat, steps_per_epoch: 3, {}", key)),
                   "because data.stream is given"));
}

}  // namespace plexaura::testing::open_table_test
