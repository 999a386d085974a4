#include "app/data/open_arrays.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/data/arrays/npy_text.h"

namespace plexaura::testing::open_arrays_test {

namespace {

// A folder with arrays of rows, images of bytes, labels and targets, each also in arrays.npz.
struct Arrays {
  Arrays() {
    write("x_train", npy_of<double>("<f8", "(4, 2)", {1, 10, 2, 20, 3, 30, 4, 40}));
    write("y_train", npy_of<std::int64_t>("<i8", "(4,)", {7, 9, 7, 9}));
    write("x_test", npy_of<double>("<f8", "(1, 2)", {2.5, 25}));
    write("y_test", npy_of<std::int64_t>("<i8", "(1,)", {9}));
    write("targets", npy_of<float>("<f4", "(4, 2)", {0, 1, 1, 0, 0, 0, 1, 1}));
    write("pictures", npy_of<std::uint8_t>("|u1", "(4, 1, 1, 2)", {1, 2, 3, 4, 5, 6, 7, 8}));
    folder.write("arrays.npz", zip_text(members));
  }

  RunData open(const std::string& keys, const std::string& model = "{}",
               const std::optional<TrainedData>& trained = {}) const {
    const bool is_archive = keys.find("npz") != std::string::npos;
    const Config config =
        Config::parse(fmt::format("model: {}\ndata: {{path: {}, {}}}\n", model,
                                  (is_archive ? folder / "arrays.npz" : folder.path()).string(), keys),
                      "test.yaml");
    RunData data = open_data(config, trained);
    config.check_all_used();
    return data;
  }

  std::string refusal(const std::string& keys, const std::string& model = "{}") const {
    return user_error([&] { open(keys, model); });
  }

  TemporaryFolder folder;

 private:
  void write(const std::string& name, const std::string& text) {
    folder.write(name + ".npy", text);
    members.push_back({name + ".npy", text, name == "x_train"});
  }

  std::vector<ZipMember> members;
};

// Returns the numbers of a field of a sample.
template <class T>
std::vector<T> field_of(const SampleSource& samples, std::int64_t index, std::size_t field = 0) {
  std::vector<std::vector<std::byte>> bytes;
  for (const Field& one : samples.fields()) bytes.emplace_back(static_cast<std::size_t>(one.type.bytes()));
  const std::vector<std::span<std::byte>> places(bytes.begin(), bytes.end());
  samples.read_fields(index, {}, places);
  const auto* first = reinterpret_cast<const T*>(bytes[field].data());
  return {first, first + bytes[field].size() / sizeof(T)};
}

const std::string with_test = "validation_samples: x_test, validation_labels: y_test";

}  // namespace

TEST_CASE("arrays of a folder and of an npz file are the same samples") {
  const Arrays arrays;
  for (const std::string format : {"npy", "npz"}) {
    const RunData data = arrays.open(fmt::format("format: {}, standardise: false, {}", format, with_test));
    CHECK(data.train->size() == 4);
    CHECK(data.validation->size() == 1);
    CHECK(data.trained.classes == std::vector<std::string>{"7", "9"});
    CHECK(field_of<float>(*data.train, 2) == std::vector<float>{3, 30});
    CHECK(field_of<std::int64_t>(*data.validation, 0, 1) == std::vector<std::int64_t>{1});
    CHECK(!data.is_cut);
    CHECK(data.preparation == "the columns as they are");
  }
}

TEST_CASE("rows of arrays are scaled and split as those of a table are") {
  const Arrays arrays;
  const RunData data = arrays.open("format: npy, validation_share: 0.5");
  CHECK(data.train->size() == 2);
  CHECK(data.validation->size() == 2);
  CHECK(data.is_cut);
  CHECK(data.trained.columns == std::vector<std::string>{"column 0", "column 1"});
  CHECK(field_of<float>(*data.train, 0) == std::vector<float>{-1, -1});
  // Other rows are scaled as those of the training were.
  const RunData used = arrays.open("format: npy, validation_share: 1", "{}", data.trained);
  CHECK(used.trained == data.trained);
  CHECK(used.validation->size() == 4);
  TrainedData of_words = data.trained;  // weights of a table with a column of words
  of_words.columns = {"colour=blue", "colour=red"};
  of_words.categories = {"colour"};
  CHECK(arrays.open("format: npy, validation_share: 1", "{}", of_words).trained == of_words);
}

TEST_CASE("arrays have the targets of a regression, or several labels for a sample") {
  const Arrays arrays;
  const RunData numbers =
      arrays.open("format: npz, labels: targets, validation_share: 0", "{task: regression}");
  CHECK(numbers.trained.targets == std::vector<std::string>{"targets 0", "targets 1"});
  CHECK(field_of<float>(*numbers.train, 1, 1) == std::vector<float>{1, -1});
  const RunData several =
      arrays.open("format: npz, labels: targets, validation_share: 0", "{task: multi_label}");
  CHECK(field_of<float>(*several.train, 1, 1) == std::vector<float>{1, 0});
  CHECK(contains(arrays.refusal("format: npz, labels: y_train", "{task: multi_label}"),
                 "y_train.npy: sample 0 has the value 7, and model.task is multi_label"));
}

TEST_CASE("rows with one other number are other data") {
  const Arrays arrays;
  const auto origin = [&] {
    return arrays.open("format: npy, labels: targets, validation_share: 0.5", "{task: regression}").origin;
  };
  const std::uint64_t before = origin();
  CHECK(origin() == before);
  arrays.folder.write("x_train.npy", npy_of<double>("<f8", "(4, 2)", {1, 10, 2, 20, 3, 30, 4, 41}));
  CHECK(origin() != before);
}

TEST_CASE("images of bytes are normalised by the model") {
  const Arrays arrays;
  const RunData data = arrays.open(
      "format: npy, samples: pictures, channels: last, mean: 0.5, stddev: 0.25, validation_share: 0");
  CHECK(data.sample() == TensorType{DType::uint8, {2, 1, 1}});
  CHECK(field_of<std::uint8_t>(*data.train, 3) == std::vector<std::uint8_t>{7, 8});
  CHECK(data.pixels.mean == std::vector<double>{0.5});
  CHECK(data.preparation == "(value / 255 - 0.5) / 0.25");
  CHECK(data.trained.columns.empty());
}

TEST_CASE("keys without effect and arrays that do not fit are refused") {
  const Arrays arrays;
  CHECK(contains(arrays.refusal("format: npy, mean: 0.5"),
                 "data.mean has no effect here, because the samples in "));
  CHECK(contains(arrays.refusal("format: npy, samples: pictures, channels: last, standardise: true"),
                 "data.standardise has no effect here"));
  CHECK(contains(arrays.refusal("format: npy, samples: pictures"), "set data.channels to first or last"));
  CHECK(contains(arrays.refusal("format: npy, validation_samples: x_test"),
                 "data.validation_labels is missing"));
  CHECK(contains(arrays.refusal("format: npy, folds: 2, " + with_test),
                 "data.folds has no effect here, because data.validation_samples"));
  CHECK(contains(arrays.refusal("format: npz, labels: y"),
                 "arrays.npz: has no member 'y.npy'; it has pictures.npy, "));
  CHECK(contains(arrays.refusal("format: npy, labels: y"), "y.npy"));
  CHECK(contains(arrays.refusal("format: npy, labels: y_test"), "has 4 samples, but there are 1 labels"));
  CHECK(contains(arrays.refusal("format: npy, targets: [a]", "{task: regression}"),
                 "data.targets has no effect here"));
  CHECK(contains(user_error([&] {
                   arrays.open("format: npy", "{}",
                               TrainedData{.classes = {"7", "9"}, .columns = {"a"}, .scale = {{0}, {1}}});
                 }),
                 "has samples with 2 columns and 0 targets, and the weights are of a model of 1 columns"));
}

TEST_CASE("an HDF5 file is one file, and another file is refused with and without the library") {
#ifdef PLEXAURA_HDF5
  constexpr const char* refusal = "is no HDF5 file";
#else
  constexpr const char* refusal = "this build cannot read HDF5; install libhdf5-dev";
#endif
  const Arrays arrays;
  CHECK(contains(arrays.refusal("format: hdf5"), "is a folder and data.format hdf5 reads one file"));
  const Config config = Config::parse(fmt::format("data: {{format: hdf5, path: {}, samples: train/x}}\n",
                                                  (arrays.folder / "x_train.npy").string()),
                                      "test.yaml");
  CHECK(contains(user_error([&] { open_data(config); }), refusal));
}

}  // namespace plexaura::testing::open_arrays_test
