#include "training/data/sample_reader.h"

#include <array>
#include <cstring>
#include <doctest/doctest.h>
#include <memory>

#include "training/data/loader.h"

namespace plexaura::testing::sample_reader_test {

namespace {

// A sample has its index, and the seed and the epoch with which it was read.
class ContextSource final : public SampleSource {
 public:
  std::int64_t size() const override { return 4; }
  std::vector<Field> fields() const override { return {{"read", {DType::int64, {3}}}}; }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override {
    const std::array<std::int64_t, 3> read{index, static_cast<std::int64_t>(context.seed), context.epoch};
    std::memcpy(values[0].data(), read.data(), sizeof read);
  }
};

}  // namespace

TEST_CASE("a sample is read with the seed of the run and its epoch") {
  const ContextSource source;
  for (const OnError on_error : {OnError::fail, OnError::skip})
    for (const std::int64_t epoch : {0, 1, 7}) {
      CAPTURE(epoch);
      SampleReader reader(source, {.samples = 4, .batch_size = 2}, 11, on_error, true);
      const std::vector<std::int64_t> order{3, 2, 1, 0};
      std::array<std::int64_t, 3> read{};
      const std::array<std::span<std::byte>, 1> values{std::as_writable_bytes(std::span(read))};
      REQUIRE(reader.read({.order = order, .epoch = epoch, .position = 1}, values));
      CHECK(read == std::array<std::int64_t, 3>{2, 11, epoch});
    }
}

TEST_CASE("a loader reads the samples of each epoch anew") {
  for (const OnError on_error : {OnError::fail, OnError::skip}) {
    Loader loader(std::make_shared<ContextSource>(),
                  {.batch_size = 2, .seed = 11, .shuffle = false, .on_error = on_error});
    for (const std::int64_t epoch : {0, 1})
      for (const std::int64_t step : {0, 1}) {
        CAPTURE(epoch);
        const Step read = loader.next();
        const Tensor& values = read.micro_batches[0].fields[0];
        const std::vector<std::int64_t> expected{2 * step, 11, epoch, 2 * step + 1, 11, epoch};
        CHECK(std::ranges::equal(values.as<std::int64_t>(), expected));
      }
  }
}

}  // namespace plexaura::testing::sample_reader_test
