#include "training/data/arrays/array_samples.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/training/data/arrays/npy_text.h"

namespace plexaura::testing::array_samples_test {

namespace {

NpyArray array_of(const std::string& text, const std::string& name = "x.npy") {
  return NpyArray(ByteRange(name, std::vector<std::uint8_t>(text.begin(), text.end())));
}

template <class T>
std::vector<T> sample_of(const DatasetOf<T>& samples, std::int64_t index) {
  std::vector<T> sample(static_cast<std::size_t>(samples.sample_shape().elements()));
  std::int64_t label = -1;
  samples.read(index, {}, sample, label);
  CHECK(label == samples.label(index));
  return sample;
}

ArrayLabels labels(std::vector<std::int64_t> numbers) { return {std::move(numbers), {"a", "b"}}; }

}  // namespace

TEST_CASE("classes are the different labels, sorted") {
  const ArrayLabels numbers =
      read_labels(array_of(npy_of<std::int16_t>("<i2", "(4, 1)", {10, 2, 10, -1})), {});
  CHECK(numbers.class_names == std::vector<std::string>{"-1", "2", "10"});
  CHECK(numbers.labels == std::vector<std::int64_t>{2, 1, 2, 0});
  const NpyArray words = array_of(npy_of<char>("|S3", "(2,)", {'d', 'o', 'g', 'c', 'a', 't'}));
  CHECK(read_labels(words, {}).class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(read_labels(words, {"dog", "cat"}).labels == std::vector<std::int64_t>{0, 1});
  CHECK(contains(user_error([&] { read_labels(words, {"dog"}); }),
                 "x.npy: element 1 is 'cat', which is none of"));
  CHECK(contains(user_error([] {
                   read_labels(array_of(npy_of<bool>("|b1", "(1, 2)", {false, true})), {});
                 }),
                 "has the shape [1, 2], but labels are [N]"));
  CHECK(contains(user_error([] { read_labels(array_of(npy_of<char>("|S1", "(1,)", {0})), {}); }),
                 "element 0 is an empty text"));
}

TEST_CASE("the channels of images come first in a sample") {
  const std::string text =
      npy_of<std::uint8_t>("|u1", "(2, 1, 2, 3)", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const ArrayImages last(array_of(text), labels({0, 1}), ChannelAxis::last);
  CHECK(last.sample_shape() == Shape{3, 1, 2});
  CHECK(sample_of(last, 1) == std::vector<std::uint8_t>{7, 10, 8, 11, 9, 12});
  const ArrayImages first(array_of(text), labels({0, 1}), ChannelAxis::first);
  CHECK(first.sample_shape() == Shape{1, 2, 3});
  CHECK(sample_of(first, 1) == std::vector<std::uint8_t>{7, 8, 9, 10, 11, 12});
  const ArrayImages grey(array_of(npy_of<std::uint8_t>("|u1", "(1, 1, 2)", {1, 2})), labels({0}), {});
  CHECK(grey.sample_shape() == Shape{1, 1, 2});
  const ArrayNumbers numbers(array_of(npy_of<float>("<f4", "(1, 1, 2, 2)", {1, 2, 3, 4})), labels({0}),
                             ChannelAxis::last);
  CHECK(sample_of(numbers, 0) == std::vector<float>{1, 3, 2, 4});
  CHECK(contains(user_error([&] {
                   ArrayImages(array_of(text), labels({0, 1}), {});
                 }),
                 "set data.channels to first or last"));
}

TEST_CASE("targets follow the features of their sample") {
  const NpyArray rows = array_of(npy_of<double>("<f8", "(2, 2)", {1, 2, 3, 4}));
  const ArrayNumbers samples(rows, array_of(npy_of<float>("<f4", "(2,)", {7, 8}), "y.npy"));
  CHECK(samples.sample_shape() == Shape{3});
  CHECK(sample_of(samples, 1) == std::vector<float>{3, 4, 8});
}

TEST_CASE("arrays that do not fit are refused in a sentence that names them") {
  const NpyArray rows = array_of(npy_of<double>("<f8", "(2, 2)", {1, 2, 3, 4}));
  const NpyArray flat = array_of(npy_of<float>("<f4", "(1,)", {1}));
  CHECK(contains(user_error([&] { ArrayNumbers(rows, labels({0}), {}); }),
                 "x.npy: has 2 samples, but there are 1 labels"));
  CHECK(contains(user_error([&] { ArrayNumbers(rows, flat); }),
                 "x.npy: has 2 samples, but there are 1 rows of targets"));
  CHECK(contains(user_error([&] { ArrayNumbers(flat, labels({0}), {}); }),
                 "x.npy: has the shape [1]; samples need"));
  CHECK(contains(user_error([&] {
                   ArrayNumbers(rows, labels({0, 0}), ChannelAxis::first);
                 }),
                 "which has no axis of channels"));
  const NpyArray texts = array_of(npy_of<char>("|S1", "(2,)", {'a', 'b'}));
  CHECK(contains(user_error([&] { ArrayNumbers(rows, texts); }),
                 "x.npy: its elements are text (|S1); give numbers"));
}

}  // namespace plexaura::testing::array_samples_test
