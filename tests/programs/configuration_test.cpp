#include <algorithm>
#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "models/programs/run_config.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/image.h"
#include "training/file.h"

namespace plexaura::testing::configuration_test {

namespace {

namespace fs = std::filesystem;
using Keys = std::map<std::string, std::string>;  // and their defaults

// The tables of docs/configuration.md. A key may stand in several, with a default for each format of data.
std::map<std::string, std::vector<std::string>> documented() {
  static const std::regex row(R"(\n\| `([a-z0-9_.]+)` \| (–|`([^`]*)`) \|)");
  const std::string text = read_text(fs::path(PLEXAURA_SOURCE) / "docs/configuration.md");
  std::map<std::string, std::vector<std::string>> keys;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it)
    keys[(*it)[1]].push_back((*it)[3]);
  return keys;
}

void write_digits(const fs::path& folder) {
  fs::create_directories(folder);
  for (const std::string part : {"train", "t10k"}) {
    write_text(folder / (part + "-images-idx3-ubyte"),
               std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01"
                           "ab",
                           18));
    write_text(folder / (part + "-labels-idx1-ubyte"), std::string("\0\0\x08\x01\0\0\0\x02\0\x01", 10));
  }
}

void write_images(const fs::path& folder) {
  const Image image{4, 4, std::vector<std::uint8_t>(48, 100)};
  for (const char* part : {"train/a", "train/b", "val/a", "val/b"}) {
    fs::create_directories(folder / part);
    write_file(folder / part / "1.jpg", encode_jpeg(image, 90));
  }
}

// Everything that the programs read outside `model`, where these lines are all that is written.
Keys read(const std::string& data, const std::string& training, const std::string& distributed = "") {
  std::string text = fmt::format("data: {{{}}}\ntraining: {{epochs: 2, {}}}\n", data, training);
  if (!distributed.empty()) text += fmt::format("distributed: {{{}}}\n", distributed);
  const Config config = Config::parse(text, "test.yaml");
  const RunData opened = open_data(config);
  read_options(config, opened.train->size(), 2);
  config.check_all_used();
  return config.values();
}

}  // namespace

TEST_CASE("docs/configuration.md has every key that is read, with its default") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_images(folder / "images");
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string idx = fmt::format("format: idx, path: {}", (folder / "digits").string());
  const std::string images = fmt::format("format: image_folder, path: {}", (folder / "images").string());
  const std::string sgd = "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  const std::string adam = "batch_per_rank: 1, optimizer: {name: adam, learning_rate: 0.1}";
  const std::array runs{
      read(csv + ", label: species", sgd),
      read(csv + ", folds: 5", adam),
      read(idx + ", limit: 2, validation_limit: 1", sgd + ", schedule: {name: step, every_epochs: 1}"),
      read(idx + ", use_fraction: 1", sgd + ", schedule: {name: cosine}"),
      read(images, sgd + ", schedule: {name: one_cycle}"),
      read(csv, sgd, "strategy: local"),
      read(csv, sgd, "strategy: elastic"),
      read(csv, sgd, "strategy: async-server, max_staleness: 4"),
  };
  const std::array given{"data.format",
                         "data.path",
                         "data.label",
                         "data.folds",
                         "data.limit",
                         "data.validation_limit",
                         "data.use_fraction",
                         "training.epochs",
                         "training.batch_size",
                         "training.batch_per_rank",
                         "training.optimizer.name",
                         "training.optimizer.learning_rate",
                         "training.schedule.name",
                         "training.schedule.every_epochs",
                         "distributed.strategy",
                         "distributed.max_staleness"};
  const auto written = documented();
  Keys found;
  for (const Keys& run : runs)
    for (const auto& [key, value] : run) {
      CAPTURE(key);
      REQUIRE(written.contains(key));
      const bool is_default = std::ranges::find(given, key) == given.end();
      if (is_default) CHECK(std::ranges::count(written.at(key), value) == 1);
      found.emplace(key, value);
    }
  CHECK(written.at("training.schedule.name").front() == runs[0].at("training.schedule.name"));
  for (const auto& [key, defaults] : written) {
    CAPTURE(key);
    CHECK(found.contains(key));
  }
}

TEST_CASE("keys without effect are errors") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string sgd = "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  CHECK(user_error([&] {
          read(csv + ", horizontal_flip: true", sgd);
        }).find("unknown key 'horizontal_flip' in data") != std::string::npos);
  CHECK(user_error([&] {
          read(csv + ", folds: 5, validation_share: 0.5", sgd);
        }).find("validation_share and folds are both given") != std::string::npos);
  CHECK(user_error([&] { read(csv, sgd + ", schedule: {name: one_cycle, warmup_epochs: 1}"); })
            .find("training.schedule.warmup_epochs has no effect here, because the schedule is one_cycle; "
                  "remove it") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, "batch_size: 2, optimizer: {name: adam, learning_rate: 0.1, momentum: 0.9}");
        }).find("training.optimizer.momentum has no effect here, because the optimizer is adam; remove it") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1, beta1: 0.9}");
        }).find("beta1 has no effect here, because the optimizer is sgd") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd + ", schedule: {name: cosine, gamma: 0.5}");
        }).find("gamma has no effect here, because the schedule is cosine") != std::string::npos);
  for (const std::string key : {"every: 2", "first_epochs: 1", "outer: {momentum: 0.9}", "elasticity: 0.5",
                                "push_every: 2", "max_staleness: 2", "mix: 0.5", "damping: 1"})
    CHECK(user_error([&] {
            read(csv, sgd, key);
          }).find("has no effect here, because the strategy is allreduce") != std::string::npos);
  for (const std::string key : {"bucket_bytes: 2", "rebroadcast_every: 1", "on_loss: end"})
    for (const std::string strategy : {"local", "elastic", "async-server", "downpour"})
      CHECK(user_error([&] {
              read(csv, sgd, "strategy: " + strategy + ", " + key);
            }).find("has no effect here, because the strategy is " + strategy) != std::string::npos);
  for (const std::string key :
       {"verify_every: 2", "rebroadcast_every: 1", "on_loss: drop", "algorithm: tree"})
    CHECK(user_error([&] {
            read(csv, sgd, "strategy: scatter-gather, " + key);
          }).find("has no effect here, because the strategy is scatter-gather") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: reduce-broadcast, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and the strategy is reduce-broadcast; ") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "algorithm: ring, on_loss: exact");
        }).find("distributed.on_loss is 'exact' and the algorithm is ring; ") != std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: send-recv, on_loss: drop");
        }).find("has no effect here, because the strategy is send-recv, which needs its server") !=
        std::string::npos);
  CHECK(user_error([&] {
          read(csv, sgd, "strategy: local, first_epochs: 2");
        }).find("distributed.first_epochs is '2'; it must be") != std::string::npos);
  for (const std::string key : {"mix: 0.5", "damping: 1", "every: 2", "algorithm: ring"})
    CHECK(user_error([&] {
            read(csv, sgd, "strategy: downpour, " + key);
          }).find("has no effect here, because the strategy is downpour") != std::string::npos);
  for (const std::string key :
       {"push_every: 0", "push_every: epochs", "mix: 0", "mix: 1.5", "damping: -1", "max_staleness: -1"}) {
    const std::string said = user_error([&] { read(csv, sgd, "strategy: async-server, " + key); });
    CAPTURE(said);
    CHECK(said.starts_with("test.yaml:3:"));
    CHECK(said.find("distributed." + key.substr(0, key.find(':')) + " is '") != std::string::npos);
  }
  const TemporaryFolder folder;
  write_images(folder / "images");
  CHECK(user_error([&] {
          read(fmt::format("format: image_folder, augment: false, horizontal_flip: true, path: {}",
                           (folder / "images").string()),
               sgd);
        }).find("horizontal_flip has no effect here, because data.augment is false") != std::string::npos);
}

TEST_CASE("a rate names its key, and the peak where it is above that") {
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const auto refusal = [&](const std::string& training) {
    return user_error([&] { read(csv, "batch_size: 2, " + training); });
  };
  CHECK(
      refusal("optimizer: {name: sgd, learning_rate: 0.1}, schedule: {name: cosine, floor: 5}")
          .ends_with("training.schedule.floor is 5, above the peak: training.optimizer.learning_rate is 0.1; "
                     "give at most that"));
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e-46}")
            .ends_with(
                "training.optimizer.learning_rate is 1e-46, which is 0 in float32; give a larger number"));
  CHECK(refusal("optimizer: {name: sgd, learning_rate: 1e39}")
            .ends_with("is 1e+39, which is infinite in float32; give a smaller number"));
  CHECK(refusal("precision: float64, optimizer: {name: sgd, learning_rate: 1e-46}").empty());
}

TEST_CASE("an IDX file that is there twice is refused") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  std::filesystem::copy_file(folder / "digits/t10k-labels-idx1-ubyte",
                             folder / "digits/t10k-labels-idx1-ubyte.gz");
  CHECK(user_error([&] {
          read(fmt::format("format: idx, path: {}", (folder / "digits").string()),
               "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}");
        })
            .ends_with(
                "t10k-labels-idx1-ubyte: both this file and t10k-labels-idx1-ubyte.gz are there, which may "
                "differ; remove one of them"));
}

TEST_CASE("sizes have bounds, and each error names its key") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  const std::string idx = fmt::format("format: idx, path: {}", (folder / "digits").string());
  const std::string optimizer = "optimizer: {name: sgd, learning_rate: 0.1}";
  const auto check = [](const std::string& data, const std::string& training, const std::string& wanted) {
    const std::string text = user_error([&] { read(data, training); });
    CAPTURE(text);
    CAPTURE(wanted);
    CHECK(text.starts_with("test.yaml:"));
    CHECK(text.find(wanted) != std::string::npos);
  };
  const std::string sgd = "batch_size: 2, " + optimizer;
  check(csv, "batch_size: 2147483649, " + optimizer,
        "training.batch_size is '2147483649'; it must be a whole number >= 1 and <= 2147483648");
  check(csv, "batch_per_rank: 1073741825, " + optimizer,
        "training.batch_per_rank is '1073741825'; it must be a whole number >= 1 and <= 1073741824");
  check(csv, "batch_size: 2, batch_per_rank: 1, " + optimizer,
        "training.batch_size and batch_per_rank are both given; give one of them");
  check(csv, optimizer,
        "training.batch_size is missing; give the samples of a step over all ranks, or those of one rank as "
        "batch_per_rank");
  check(csv, sgd + ", micro_batches: 3",
        "training.micro_batches is '3'; it must be a whole number >= 1 and <= 2");
  check(csv, "batch_size: 1000, micro_batches: 121, " + optimizer,
        "training.micro_batches is '121'; it must be a whole number >= 1 and <= 120");
  check(csv, sgd + ", schedule: {name: step, every_epochs: 1e300}",
        "training.schedule.every_epochs is '1e300'");
  check(csv, sgd + "}\ndistributed: {deadline_seconds: 1e10",
        "distributed.deadline_seconds is '1e10'; it must be a number > 0 and <= 1000000");
  check(csv + ", validation_share: 0.999999", sgd,
        "data.validation_share is 0.999999, which leaves 0 of the 150 samples to train on and none of the "
        "class '");
  check(csv + ", folds: 151", sgd,
        "data.folds is 151 and there are 150 samples; give at most one part a sample");
  check(idx + ", classes: 9999999999", sgd,
        "data.classes is '9999999999'; it must be a whole number >= 2 and <= 1000000");
  check(idx + ", stddev: 1e-300", sgd,
        "data.stddev is '1e-300'; it must be a number >= 1e-06 and <= 1000000");
  check(idx + ", mean: 1e300", sgd, "data.mean is '1e300'; it must be a number >= -1000000 and <= 1000000");
  CHECK_NOTHROW(read(csv + ", folds: 150", "batch_size: 2147483648, micro_batches: 120, " + optimizer));
}

TEST_CASE("a table with one other number is another table") {
  const TemporaryFolder folder;
  const auto origin = [&](const std::string& last_row) {
    write_text(folder / "t.csv", "x,y\n1,a\n2,b\n3,a\n" + last_row);
    return open_data(Config::parse(fmt::format("data: {{format: csv, path: {}, validation_share: 0}}\n",
                                               (folder / "t.csv").string()),
                                   "test.yaml"))
        .origin;
  };
  CHECK(origin("4,b\n") == origin("4.0,b\n"));
  CHECK(origin("4,b\n") != origin("4.5,b\n"));
  CHECK(origin("4,b\n") != origin("4,a\n"));
}

TEST_CASE("validation digits of another size are refused when the data is opened") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_text(folder / "digits/t10k-images-idx3-ubyte",
             std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02"
                         "abcd",
                         20));
  const std::string idx = fmt::format("format: idx, path: {}", (folder / "digits").string());
  const std::string sgd = "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  CHECK(user_error([&] { read(idx, sgd); }) ==
        fmt::format("{0}/t10k-images-idx3-ubyte: its samples have the shape [1,1,2] and those of "
                    "{0}/train-images-idx3-ubyte have [1,1,1]; give validation samples of the same shape",
                    (folder / "digits").string()));
}

TEST_CASE("without validation no validation set is needed") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_images(folder / "images");
  fs::remove(folder / "digits/t10k-images-idx3-ubyte");
  fs::remove_all(folder / "images/val");
  for (const std::string& data :
       {"idx, path: " + (folder / "digits").string(), "image_folder, path: " + (folder / "images").string(),
        fmt::format("csv, path: {}/models/iris.csv", PLEXAURA_SOURCE)}) {
    CAPTURE(data);
    const Config config =
        Config::parse(fmt::format("data: {{format: {}, validation_limit: 0}}\n", data), "test.yaml");
    const RunData opened = open_data(config);
    CHECK(opened.validation->size() == 0);
    CHECK(opened.train->size() >= 2);
  }
}

TEST_CASE("a table may be separated by another character, and its header may be told") {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& table, const std::string& keys) {
    write_text(folder / "t.csv", table);
    return open_data(Config::parse(fmt::format("data: {{format: csv, path: {}, validation_share: 0{}}}\n",
                                               (folder / "t.csv").string(), keys),
                                   "test.yaml"))
        .train->size();
  };
  CHECK(open("a;k\n1;x\n2;y\n", ", delimiter: ';'") == 2);
  CHECK(open("a\tk\n1\tx\n2\ty\n", ", delimiter: \"\\t\"") == 2);
  CHECK(user_error([&] {
          open("a;k\n1;x\n", ", delimiter: ';;'");
        }).ends_with(": data.delimiter must be one character, for example \";\" or \"\\t\" for a tab"));
  CHECK(user_error([&] { open("1,x\n2,y\n", ""); }).find("set data.header to false") != std::string::npos);
  CHECK(open("1,x\n2,y\n3,x\n", ", header: true") == 2);
  CHECK(open("1,x\n2,y\n", ", header: false") == 2);
}

TEST_CASE("a part of the training data that lacks one of its classes is refused") {
  const auto samples = [](const std::string& part) {
    return open_data(Config::parse(fmt::format("data: {{format: csv, path: {}/models/iris.csv, {}}}\n",
                                               PLEXAURA_SOURCE, part),
                                   "test.yaml"))
        .train->size();
  };
  CHECK(samples("limit: 3") == 3);
  CHECK(samples("use_fraction: 0.025") == 3);
  for (const std::string part : {"limit: 2", "limit: 1", "use_fraction: 1e-09"}) {
    const std::string text = user_error([&] { samples(part); });
    CHECK(text.find("data." + part.substr(0, part.find(':')) + " is " + part.substr(part.find(' ') + 1) +
                    ", which leaves ") != std::string::npos);
    CHECK(text.find(" of the 120 samples to train on and none of the class '") != std::string::npos);
  }
}

TEST_CASE(
    "a split that leaves a class without training samples is refused, and one without validation is not") {
  const TemporaryFolder folder;
  const std::string table = (folder / "t.csv").string();
  write_text(table, "x,y\n1,a\n2,a\n3,a\n4,a\n5,a\n6,rare\n7,a\n8,a\n9,a\n");
  const auto split = [&](const std::string& keys) {
    const RunData data = open_data(
        Config::parse(fmt::format("data: {{format: csv, path: {}, {}}}\n", table, keys), "test.yaml"));
    return std::pair(data.train->size(), data.validation->size());
  };
  CHECK(split("folds: 3, fold: 0") == std::pair<std::int64_t, std::int64_t>(6, 3));
  CHECK(user_error([&] { split("folds: 3, fold: 1"); })
            .ends_with(
                "data.fold is 1, which leaves 6 of the 9 samples to train on and none of the class 'rare'; "
                "give that class more samples, or leave it out of the table"));
  CHECK(split("validation_share: 0.4") == std::pair<std::int64_t, std::int64_t>(5, 4));
  CHECK(user_error([&] { split("validation_share: 0.7"); })
            .ends_with(
                "data.validation_share is 0.7, which leaves 3 of the 9 samples to train on and none of the "
                "class 'rare'; give a smaller share"));
}

TEST_CASE("a place that does not fit the format is told so, and so is a single class") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_images(folder / "images");
  const std::string table = (folder / "t.csv").string();
  write_text(table, "x,y\n1,a\n2,a\n");
  const auto refusal = [](const std::string& data) {
    return user_error(
        [&] { open_data(Config::parse(fmt::format("data: {{format: {}}}\n", data), "test.yaml")); });
  };
  CHECK(refusal("csv, path: ''") ==
        "test.yaml:1:27: data.path is empty; name the data's place, for example with --set data.path=...");
  const std::string digits = (folder / "digits").string();
  CHECK(refusal("csv, path: " + digits)
            .ends_with("data.path '" + digits +
                       "' is a folder and data.format csv reads a table; name the file"));
  for (const std::string format : {"idx", "image_folder"})
    CHECK(refusal(format + ", path: " + table)
              .ends_with("data.path '" + table + "' is no folder and data.format " + format +
                         " reads the files of one; name the folder that holds them"));
  CHECK(refusal("csv, path: " + table)
            .ends_with("data.path '" + table +
                       "' has samples of one class alone, 'a', and a model tells two or more apart; add the "
                       "others, or name the "
                       "column of the labels in data.label"));
  fs::remove_all(folder / "images/train/b");
  fs::remove_all(folder / "images/val/b");
  CHECK(refusal("image_folder, path: " + (folder / "images").string())
            .ends_with("apart; add folders of the others"));
}

TEST_CASE("without a header the label has a number") {
  const TemporaryFolder folder;
  const std::string table = (folder / "t.csv").string();
  write_text(table, "1,a\n2,b\n");
  const auto open = [&](const std::string& label) {
    return open_data(Config::parse(fmt::format("data: {{format: csv, path: {}, header: false, label: {}}}\n",
                                               table, label),
                                   "test.yaml"))
        .train->size();
  };
  CHECK(open("-1") == 2);
  CHECK(user_error([&] { open("kind"); })
            .ends_with(": data.label is 'kind' and with data.header=false the columns "
                       "have no names; give its number from 0, or leave out data.header"));
}

TEST_CASE("a checkpoint is no folder of checkpoints") {
  const TemporaryFolder folder;
  write_text(folder / "state.safetensors", "");
  const std::string csv = fmt::format("format: csv, path: {}/models/iris.csv", PLEXAURA_SOURCE);
  CHECK(user_error([&] {
          read(csv, "batch_size: 2, optimizer: {name: sgd, learning_rate: 0.1}}\noutput: {dir: " +
                        folder.path().string());
        }) == "test.yaml:3:15: output.dir '" + folder.path().string() +
                  "' is a checkpoint; name the folder that it lies in");
}

TEST_CASE("how samples are prepared is told, with every figure") {
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  write_images(folder / "images");
  const auto preparation = [&](const std::string& data) {
    return open_data(Config::parse(fmt::format("data: {{format: {}}}\n", data), "test.yaml")).preparation;
  };
  const std::string images = "image_folder, path: " + (folder / "images").string();
  CHECK(preparation(images) ==
        "random crop of 0.08 to 1 of the area, scaled to 224x224, half of them flipped; validation: shorter "
        "side "
        "scaled to 256, 224x224 from the centre; (value / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, "
        "0.225]");
  CHECK(preparation(images + ", image_size: 64, augment: false, mean: [0, 0.25, 1], stddev: [1, 2, 4]") ==
        "shorter side scaled to 73, 64x64 from the centre; (value / 255 - [0, 0.25, 1]) / [1, 2, 4]");
  CHECK(preparation(fmt::format("idx, path: {}, mean: 0.5", (folder / "digits").string())) ==
        "(value / 255 - 0.5) / 1");
  CHECK(preparation(fmt::format("csv, path: {}/models/iris.csv, standardise: false", PLEXAURA_SOURCE)) ==
        "the columns as they are");
  CHECK(user_error([&] {
          preparation(images + ", mean: [0.5]");
        }).ends_with(": data.mean has 1 numbers; give three, for red, green and blue"));
  CHECK(user_error([&] { preparation(images + ", stddev: [1, 0, 1]"); }).find("data.stddev[1] is '0'") !=
        std::string::npos);
}

TEST_CASE("files that are not images are counted where the data are described") {
  const TemporaryFolder folder;
  write_images(folder / "images");
  const auto description = [&] {
    const Config config = Config::parse(
        fmt::format("data: {{format: image_folder, path: {}}}\n", (folder / "images").string()), "test.yaml");
    return open_data(config).description;
  };
  CHECK(description().ends_with("images"));
  write_text(folder / "images/train/a/Thumbs.db", "");
  CHECK(description().ends_with("images (ignored: 1 file that is not an image)"));
  write_text(folder / "images/val/b/notes", "");
  CHECK(description().ends_with("images (ignored: 2 files that are not images)"));
}

}  // namespace plexaura::testing::configuration_test
