#include "app/trials/read_samples.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <doctest/doctest.h>
#include <mutex>
#include <numeric>
#include <vector>

#include "core/base/error.h"
#include "tests/support/error_text.h"
#include "training/files/shortage.h"

namespace plexaura::testing::read_samples_test {

namespace {

// A sample is its index. Notes which ones were read, and fails for one of them.
class NotedSamples final : public SampleSource {
 public:
  explicit NotedSamples(std::int64_t size, std::int64_t broken = -1) : size_(size), broken_(broken) {}

  std::int64_t size() const override { return size_; }
  std::vector<Field> fields() const override { return {{"index", {DType::int64, {}}}}; }
  void read_fields(std::int64_t index, const SampleContext&,
                   std::span<const std::span<std::byte>> values) const override {
    read.push_back(index);
    if (index == broken_) throw UserError("sample is broken");
    std::memcpy(values[0].data(), &index, sizeof index);
  }

  mutable std::vector<std::int64_t> read;

 private:
  std::int64_t size_, broken_;
};

bool is_never_over() { return false; }

TEST_CASE("the ranks together read each sample once, and early ones are spread over all") {
  for (const std::int64_t size : {0, 1, 2, 7, 100, 1000}) {
    NotedSamples samples(size);
    std::int64_t count = 0;
    for (const std::int64_t rank : {0, 1, 2})
      count += read_samples(samples, rank, 3, 1, OnError::fail, is_never_over).read;
    CHECK(count == size);
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    if (size == 1000) CHECK(*std::max_element(samples.read.begin(), samples.read.begin() + 10) > 800);
    std::ranges::sort(samples.read);
    CHECK(samples.read == all);
  }
  CHECK(read_samples(NotedSamples(9), 0, 1, 1, OnError::fail, [] { return true; }).read == 0);
}

TEST_CASE("a sample that cannot be read is an error or is counted") {
  const NotedSamples samples(10, 4);
  CHECK(user_error([&] { read_samples(samples, 0, 1, 1, OnError::fail, is_never_over); }) ==
        "sample is broken");
  const ReadSampleCount count = read_samples(samples, 0, 1, 1, OnError::skip, is_never_over);
  CHECK(count.read == 10);
  CHECK(count.unreadable == 1);
  CHECK(count.first_error == "sample is broken");
}

TEST_CASE("a limit on open files is an error, because no other sample could be read") {
  class Limited final : public SampleSource {
   public:
    std::int64_t size() const override { return 10; }
    std::vector<Field> fields() const override { return {{"index", {DType::int64, {}}}}; }
    void read_fields(std::int64_t, const SampleContext&,
                     std::span<const std::span<std::byte>>) const override {
      throw LimitReached("Too many open files");
    }
  };
  CHECK(user_error([] { read_samples(Limited(), 0, 1, 1, OnError::skip, is_never_over); }) ==
        "Too many open files");
}

TEST_CASE("some samples are spread evenly, and are all if there are few") {
  const auto source = std::make_shared<NotedSamples>(10);
  CHECK(some_samples(source, 10) == source);
  CHECK(some_samples(nullptr, 3) == nullptr);
  const auto some = some_samples(source, 4);
  CHECK(some->size() == 4);
  CHECK(some->fields() == source->fields());
  std::int64_t value = 0;
  const std::vector<std::span<std::byte>> values{std::as_writable_bytes(std::span(&value, 1))};
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < 4; ++i) {
    some->read_fields(i, {}, values);
    found.push_back(value);
  }
  CHECK(found == std::vector<std::int64_t>{0, 2, 5, 7});
}

}  // namespace

}  // namespace plexaura::testing::read_samples_test
