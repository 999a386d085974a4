#include "training/data/idx.h"

#include <cmath>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>

#include "tests/training/data/data_support.h"
#include "training/data/loader.h"
#include "training/files/file.h"

namespace plexaura::testing::idx_test {

namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift);
  return bytes;
}

// Two images of 2 x 3 pixels.
std::string image_text() {
  return big_endian(2051) + big_endian(2) + big_endian(2) + big_endian(3) +
         std::string("\0\x33\x66\x99\xcc\xff", 6) + "abcdef";
}

std::string label_text() { return big_endian(2049) + big_endian(2) + std::string("\x03\x09", 2); }

void write_gzip(const std::filesystem::path& path, const std::string& text) {
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

std::string error_of_pair(const std::string& images, const std::string& labels,
                          const IdxOptions& options = {}) {
  const TemporaryFolder folder;
  const auto image_path = folder.write("images", images);
  const auto label_path = folder.write("labels", labels);
  return user_error([&] { const IdxDataset dataset(image_path, label_path, options); });
}

}  // namespace

TEST_CASE("IDX files are read plain and gzipped, whatever they are called") {
  const TemporaryFolder folder;
  const auto labels = folder.write("labels.gz", label_text());
  const auto plain = folder.write("images.gz", image_text());
  write_gzip(folder / "images", image_text());
  for (const auto& images : {plain, folder / "images"}) {
    const IdxDataset dataset(images, labels);
    CHECK(dataset.size() == 2);
    CHECK(dataset.sample_shape() == Shape{1, 2, 3});
    CHECK(dataset.class_names().size() == 10);
    CHECK(labels_of(dataset) == std::vector<std::int64_t>{3, 9});
    CHECK(dataset.sample_dtype() == DType::uint8);
    std::vector<std::uint8_t> sample(6);
    std::int64_t label = -1;
    dataset.read(0, {}, sample, label);
    CHECK(label == 3);
    CHECK(sample == std::vector<std::uint8_t>{0, 0x33, 0x66, 0x99, 0xcc, 0xff});
  }
}

TEST_CASE("a batch of images takes a byte for each pixel") {
  const TemporaryFolder folder;
  const auto images =
      std::make_shared<IdxDataset>(folder.write("i", image_text()), folder.write("l", label_text()));
  Loader loader(images, {.batch_size = 2, .shuffle = false});
  const Step step = loader.next();
  CHECK(step.micro_batches.front().fields[0].bytes() == 2 * 6);
}

TEST_CASE("broken IDX files are refused in a sentence that names them") {
  CHECK(contains(error_of_pair(label_text(), label_text()),
                 "images: begins with 2049, but images begin with 2051"));
  CHECK(contains(error_of_pair(image_text(), image_text()),
                 "labels: begins with 2051, but labels begin with 2049"));
  CHECK(contains(error_of_pair(image_text().substr(0, 20), label_text()),
                 "images: ends before the last record"));
  CHECK(contains(error_of_pair("", label_text()), "images: ends before"));
  CHECK(contains(error_of_pair(image_text() + "x", label_text()), "images: has bytes after the last record"));
  CHECK(contains(error_of_pair(image_text(), label_text() + "x"), "labels: has bytes after"));
  CHECK(
      contains(error_of_pair(image_text(), big_endian(2049) + big_endian(1) + "\x01"), "has 1 labels, but"));
  CHECK(
      contains(error_of_pair(big_endian(2051) + big_endian(0) + big_endian(2) + big_endian(3), label_text()),
               "has 0 images of 2x3"));
  CHECK(contains(error_of_pair(image_text(), label_text(), {.classes = 9}), "labels: record 1 has label 9"));
  CHECK(contains(error_of_pair(image_text(), label_text(), {.classes = 0}), "must be positive"));
  const TemporaryFolder folder;
  const std::string absent = (folder / "absent").string();
  CHECK(contains(user_error([&] { const IdxDataset dataset(absent, absent); }),
                 "cannot read '" + absent + "': No such file"));
}

TEST_CASE("a file that is called .gz and is neither gzip data nor an IDX file is told apart") {
  const TemporaryFolder folder;
  const auto labels = folder.write("labels", label_text());
  const auto error = [&](const std::filesystem::path& images) {
    return user_error([&] { const IdxDataset dataset(images, labels); });
  };
  CHECK(contains(error(folder.write("text.gz", "notgzip")),
                 "text.gz: begins with 1852798055, but images begin with 2051, and is not gzip data as its "
                 "name says; give an IDX file of unsigned bytes, plain or gzipped"));
  write_gzip(folder / "zipped.gz", label_text());
  CHECK(contains(error(folder / "zipped.gz"), "begin with 2051; give an IDX file"));
}

TEST_CASE("a header that promises far too much is an error, not an allocation") {
  const std::string huge = big_endian(2051) + big_endian(0xffffffff) + big_endian(60000) + big_endian(60000);
  CHECK(contains(error_of_pair(huge + "abc", label_text()), "ends before the last record"));
}

TEST_CASE("a gzip stream that is cut off anywhere is refused") {
  const TemporaryFolder folder;
  std::string text = image_text();
  write_gzip(folder / "whole", text);
  const auto bytes = InputFile(folder / "whole").read_all();
  const auto labels = folder.write("labels", label_text());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    const auto cut = folder.write("cut", std::span(bytes).first(size));
    CHECK(contains(user_error([&] { const IdxDataset dataset(cut, labels); }), "cut: "));
  }
}

TEST_CASE("a gzip file of several streams is read as one, and anything else behind a stream is refused") {
  const TemporaryFolder folder;
  const auto labels = folder.write("labels", label_text());
  write_gzip(folder / "first", image_text().substr(0, 20));
  write_gzip(folder / "second", image_text().substr(20));
  auto bytes = InputFile(folder / "first").read_all();
  const auto second = InputFile(folder / "second").read_all();
  bytes.insert(bytes.end(), second.begin(), second.end());
  CHECK(IdxDataset(folder.write("images", bytes), labels).size() == 2);

  bytes.push_back('x');
  const auto images = folder.write("images", bytes);
  CHECK(user_error([&] { const IdxDataset dataset(images, labels); }) ==
        images.string() + ": has bytes after its gzip stream that are not gzip; fetch the file again");
}

TEST_CASE("a damaged gzip stream is refused") {
  const TemporaryFolder folder;
  const auto labels = folder.write("labels", label_text());
  write_gzip(folder / "images", image_text());
  auto bytes = InputFile(folder / "images").read_all();
  bytes[bytes.size() - 6] ^= 1;  // a byte of its checksum
  CHECK(contains(user_error([&] { const IdxDataset dataset(folder.write("images", bytes), labels); }),
                 "images: the gzip stream is damaged: incorrect data check; fetch the file again"));
}

TEST_CASE("a named pipe that nobody writes to is refused, and not waited for") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(contains(user_error([&] { const IdxDataset dataset(folder / "pipe", folder / "pipe"); }),
                 "pipe': it is not a regular file"));
}

TEST_CASE("MNIST has its known sizes, first labels, mean and deviation") {
  const auto data = testing::real_data();
  if (!data) return;
  const auto folder = *data / "mnist";
  const IdxDataset train(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz");
  const IdxDataset test(folder / "t10k-images-idx3-ubyte.gz", folder / "t10k-labels-idx1-ubyte.gz");
  CHECK(train.size() == 60000);
  CHECK(test.size() == 10000);
  CHECK(train.sample_shape() == Shape{1, 28, 28});
  CHECK(train.label(0) == 5);
  CHECK(test.label(0) == 7);
  double sum = 0;
  double squares = 0;
  std::vector<std::uint8_t> sample(28UL * 28);
  for (std::int64_t i = 0; i < train.size(); ++i) {
    std::int64_t label = -1;
    train.read(i, {}, sample, label);
    for (const std::uint8_t byte : sample) {
      const double value = byte / 255.0;
      sum += value;
      squares += value * value;
    }
  }
  const double count = 60000.0 * 28 * 28;
  CHECK(sum / count == doctest::Approx(0.1307).epsilon(0.001));
  CHECK(std::sqrt(squares / count - sum / count * sum / count) == doctest::Approx(0.3081).epsilon(0.001));
}

}  // namespace plexaura::testing::idx_test
