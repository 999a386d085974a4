#include "app/data/open_data.h"

#include <cstdint>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/app/options/read_configuration.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "training/data/images/image.h"
#include "training/files/file.h"

namespace plexaura::testing::open_data_test {

namespace fs = std::filesystem;

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

TEST_CASE("images that were moved, swapped or renamed are other data") {
  const TemporaryFolder folder;
  const fs::path images = folder / "images";
  const auto open = [&] {
    return open_data(Config::parse(fmt::format("data: {{format: image_folder, path: {}}}\n", images.string()),
                                   "test.yaml"));
  };
  write_images(images);
  for (const char* name : {"train/a/2.jpg", "train/b/3.jpg"})
    fs::copy_file(images / "train/a/1.jpg", images / name);
  const RunData before = open();
  CHECK(open().origin == before.origin);
  fs::rename(images / "train/a/2.jpg", images / "train/b/2.jpg");
  const RunData moved = open();
  CHECK(moved.origin != before.origin);
  fs::rename(images / "train/b/3.jpg", images / "train/a/3.jpg");  // keeps the number of images in each class
  CHECK(open().origin != before.origin);
  CHECK(open().origin != moved.origin);
  REQUIRE(before.older_origin);
  CHECK(moved.older_origin == before.older_origin);
  CHECK(before.older_origin != before.origin);
}

namespace {

// Opens this table for a regression, or for the task that `model` names.
RunData open_targets(const std::string& table, const std::string& keys,
                     const std::string& model = "task: regression",
                     const std::optional<TrainedData>& trained = {}) {
  const TemporaryFolder folder;
  write_text(folder / "t.csv", table);
  const Config config = Config::parse(fmt::format("model: {{{}}}\ndata: {{format: csv, path: {}, {}}}\n",
                                                  model, (folder / "t.csv").string(), keys),
                                      "test.yaml");
  RunData data = open_data(config, trained);
  config.check_all_used();
  return data;
}

// Returns the features and targets of a training sample.
std::vector<std::vector<float>> sample_of(const RunData& data, std::int64_t index) {
  std::vector<std::vector<float>> values;
  std::vector<std::span<std::byte>> bytes;
  for (const Field& field : data.train->fields())
    values.emplace_back(static_cast<std::size_t>(field.type.shape.elements()));
  for (std::vector<float>& field : values) bytes.push_back(std::as_writable_bytes(std::span(field)));
  data.train->read_fields(index, {}, bytes);
  return values;
}

const std::string heights = "height,x,mass,y\n1,10,100,5\n2,20,300,5\n3,30,100,6\n4,40,300,6\n";

}  // namespace

TEST_CASE("the targets of a regression are separated from the inputs, and scaled as they are") {
  const RunData plain = open_targets(
      heights,
      "targets: [mass, height], standardise: false, standardise_targets: false, validation_share: 0");
  CHECK(plain.train->fields() ==
        std::vector<Field>{{"samples", {DType::float32, {2}}}, {"targets", {DType::float32, {2}}}});
  CHECK(sample_of(plain, 1) == std::vector<std::vector<float>>{{20, 5}, {300, 2}});
  CHECK(plain.output_count() == 2);
  CHECK(plain.outputs == "'mass', 'height'");
  CHECK(plain.description.starts_with("4 samples of 2 targets, 0 for validation, csv from "));
  CHECK(!plain.is_measured);
  const RunData scaled =
      open_targets(heights, "targets: [mass, height], standardise: false, validation_share: 0");
  CHECK(sample_of(scaled, 1)[0] == std::vector<float>{20, 5});
  CHECK(sample_of(scaled, 1)[1][0] == 1);
  CHECK(scaled.trained.targets == std::vector<std::string>{"mass", "height"});
  CHECK(scaled.trained.target_scale.mean == std::vector<float>{200, 2.5F});
  CHECK(scaled.trained.target_scale.stddev[0] == 100);
  CHECK(scaled.trained.scale.stddev == std::vector<float>{1, 1});
  CHECK(scaled.is_measured);
  CHECK(scaled.origin == plain.origin);
  CHECK(scaled.origin !=
        open_targets(heights, "targets: [height, mass], standardise: false, validation_share: 0").origin);
  // Other rows are scaled as those of the training were, and columns are found by name.
  const RunData other =
      open_targets("mass,y,height,x\n0,7,8,9\n", "targets: [mass, height], validation_share: 0",
                   "task: regression", scaled.trained);
  CHECK(sample_of(other, 0)[0] == std::vector<float>{9, 7});
  CHECK(sample_of(other, 0)[1][0] == -2);
}

TEST_CASE("keys that do not fit the task are refused") {
  const auto refusal = [](const std::string& keys, const std::string& model = "task: regression") {
    return user_error([&] { open_targets(heights, keys, model); });
  };
  CHECK(refusal("validation_share: 0") ==
        "test.yaml:2:1: data.targets is missing, and model.task is regression; list the columns of the "
        "numbers to "
        "predict, for example [price]");
  CHECK(refusal("targets: []").find("data.targets is empty, and model.task is regression") !=
        std::string::npos);
  CHECK(refusal("targets: [mass]", "task: classification")
            .ends_with("data.targets has no effect here, because model.task is classification; set that to "
                       "regression or multi_label, or name the column of the classes in data.label"));
  CHECK(refusal("targets: [mass], label: y")
            .ends_with(
                "data.label has no effect here, because model.task is regression and data.targets names the "
                "columns to predict; remove it"));
  CHECK(refusal("targets: [weight]")
            .ends_with("t.csv: no column is called 'weight'; the columns are: height, x, mass, y"));
  CHECK(refusal("targets: [mass, mass]").ends_with("the target mass is given twice; give each target once"));
  CHECK(refusal("targets: [mass, x, y, height]")
            .ends_with("all columns are targets; features need one at least"));
  CHECK(refusal("targets: [mass], validation_share: 0.99")
            .ends_with("data.validation_share is 0.99, which leaves none of the 4 samples to train on; give "
                       "a smaller share"));
  CHECK(refusal("standardise_targets: false", "task: classification").find("data.targets is not given") !=
        std::string::npos);
  CHECK(
      refusal("targets: [mass], header: false")
          .ends_with(
              "data.targets names 'mass' and with data.header=false the columns have no names; give numbers "
              "from 0, or leave out data.header"));
  const TemporaryFolder folder;
  write_digits(folder / "digits");
  CHECK(user_error([&] {
          open_data(
              Config::parse(fmt::format("model: {{task: regression}}\ndata: {{format: idx, path: {}}}\n",
                                        (folder / "digits").string()),
                            "test.yaml"));
        })
            .find("data.format is idx, whose samples have classes, and model.task is regression; give a "
                  "table (csv)") != std::string::npos);
}

TEST_CASE("the targets of several labels are 0 or 1, and are not scaled") {
  const std::string labels = "x,sweet,y,sour\n1,0,2,1\n2,1,3,1\n3,0,5,0\n";
  const std::string task = "task: multi_label";
  const RunData data =
      open_targets(labels, "targets: [sour, sweet], standardise: false, validation_share: 0", task);
  CHECK(sample_of(data, 1) == std::vector<std::vector<float>>{{2, 3}, {1, 1}});
  CHECK(data.trained.targets == std::vector<std::string>{"sour", "sweet"});
  CHECK(!data.is_measured);
  CHECK(user_error([&] { open_targets(labels, "targets: [sour, y]", task); })
            .ends_with("data.targets names the column 'y', which in row 1 has the value 2, and model.task is "
                       "multi_label; write 1 for a sample with the label and 0 for one without it, or set "
                       "model.task to regression"));
  CHECK(
      user_error([&] { open_targets(labels, "targets: [sour], standardise_targets: true", task); })
          .ends_with(
              "data.standardise_targets has no effect here, because model.task is multi_label, whose targets "
              "are 0 or 1; remove it"));
  CHECK(user_error([&] { open_targets(labels, "standardise: false", task); })
            .ends_with(
                "data.targets is missing, and model.task is multi_label; list the columns of the labels, for "
                "example [sweet, sour]"));
}

TEST_CASE("balanced weights are counted on the samples to train on, and kept") {
  const std::string table = "x,class\n1,b\n2,a\n3,b\n4,c\n5,b\n6,b\n7,a\n8,c\n9,b\n10,b\n";
  const auto weights = [&](const std::string& keys, const std::optional<TrainedData>& trained = {}) {
    return open_targets(table, "validation_share: 0" + keys, "class_weights: balanced", trained).trained;
  };
  const TrainedData all = weights("");
  CHECK(all.class_weights == std::vector<double>{10.0 / 6, 10.0 / 18, 10.0 / 6});
  CHECK(weights(", limit: 4").class_weights == std::vector<double>{4.0 / 3, 4.0 / 6, 4.0 / 3});
  CHECK(weights(", limit: 4", all).class_weights == all.class_weights);
  CHECK(open_targets(table, "validation_share: 0", "").trained.class_weights.empty());
}

TEST_CASE("targets of a table without a header are numbers of columns") {
  const RunData data =
      open_targets("1,10,100\n2,20,300\n",
                   "header: false, targets: [-1, 0], standardise: false, standardise_targets: false, "
                   "validation_share: 0");
  CHECK(sample_of(data, 1) == std::vector<std::vector<float>>{{20}, {300, 2}});
}

TEST_CASE("data are described with their classes") {
  const auto classes = [](const std::string& keys) {
    return open_data(Config::parse(fmt::format("data: {{format: csv, path: {}/models/iris.csv{}}}\n",
                                               PLEXAURA_SOURCE, keys),
                                   "test.yaml"))
        .outputs;
  };
  CHECK(classes("") == "'setosa' (40), 'versicolor' (40), 'virginica' (40)");
  CHECK(classes(", limit: 4") == "'setosa' (2), 'versicolor' (1), 'virginica' (1)");
  const TemporaryFolder folder;
  write_images(folder / "images");
  CHECK(open_data(Config::parse(
                      fmt::format("data: {{format: image_folder, path: {}}}\n", (folder / "images").string()),
                      "test.yaml"))
            .outputs == "'a' (1), 'b' (1)");
  write_digits(folder / "digits");
  CHECK(open_data(Config::parse(fmt::format("data: {{format: idx, path: {}, classes: 3}}\n",
                                            (folder / "digits").string()),
                                "test.yaml"))
            .outputs == "'0' (1), '1' (1), '2' (0)");
}

TEST_CASE("a label that may be a missing one is a class where the configuration says so") {
  const TemporaryFolder folder;
  write_text(folder / "t.csv", "x,y\n1,a\n2,NA\n");
  const auto open = [&](const std::string& keys) {
    return open_data(Config::parse(fmt::format("data: {{format: csv, path: {}, validation_share: 0{}}}\n",
                                               (folder / "t.csv").string(), keys),
                                   "test.yaml"))
        .train->size();
  };
  CHECK(user_error([&] { open(""); })
            .ends_with("t.csv:3:3: the label is 'NA', as programs write a missing one; fill in "
                       "the class, remove the row, or set data.missing_is_class to true if a "
                       "class is called so"));
  CHECK(open(", missing_is_class: true") == 2);
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
                "give that class more samples, or leave it out"));
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
              .ends_with("data.path '" + table + "' is not a folder, but data.format " + format +
                         " reads a folder; name the folder that contains the files"));
  CHECK(refusal("csv, path: " + table)
            .ends_with("data.path '" + table +
                       "' has samples of only one class, 'a', but a model needs two or more; add the "
                       "others, or name the "
                       "column of the labels in data.label"));
  fs::remove_all(folder / "images/train/b");
  fs::remove_all(folder / "images/val/b");
  CHECK(refusal("image_folder, path: " + (folder / "images").string())
            .ends_with("needs two or more; add folders of the others"));
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
  CHECK(preparation(images + ", image_size: 64, augmentation: [{random_crop: {}}, {grayscale: 0.1}]")
            .starts_with("random_crop, grayscale; validation: shorter side scaled to 73, 64x64"));
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
  write_text(folder / "images/val/b/2.webp", std::string("RIFF\0\0\0\0WEBP", 12));
  CHECK(description().ends_with(
      "images (ignored: 1 in WebP, 2 files that are not images; only JPEG and PNG are read)"));
}

}  // namespace plexaura::testing::open_data_test
