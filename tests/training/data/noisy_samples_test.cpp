#include "training/data/noisy_samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/error_text.h"

namespace plexaura::testing::noisy_samples_test {

namespace {

constexpr std::size_t pixels = 1001;  // odd: the last number of a pair is not used

// Each image has the value 128 + epoch everywhere.
class GreyImages final : public DatasetOf<std::uint8_t> {
 public:
  std::int64_t size() const override { return 6; }
  Shape sample_shape() const override { return Shape{1, 1, pixels}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  void read(std::int64_t, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override {
    std::ranges::fill(sample, static_cast<std::uint8_t>(128 + context.epoch));
    label = 0;
  }

 private:
  std::vector<std::string> names_{"x"};
};

// Rows of numbers.
class Rows final : public DatasetOf<float> {
 public:
  std::int64_t size() const override { return 1; }
  Shape sample_shape() const override { return Shape{2}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t) const override { return 0; }
  void read(std::int64_t, const SampleContext&, std::span<float>, std::int64_t&) const override {}

 private:
  std::vector<std::string> names_{"x"};
};

struct NoisyImage {
  std::vector<std::uint8_t> noisy = std::vector<std::uint8_t>(pixels);
  std::vector<std::uint8_t> clean = std::vector<std::uint8_t>(pixels);
  bool operator==(const NoisyImage&) const = default;
};

NoisyImage read(double deviation, std::int64_t index, const SampleContext& context) {
  const NoisySamples samples(std::make_shared<GreyImages>(), deviation);
  NoisyImage found;
  samples.read_fields(index, context,
                      std::array{std::as_writable_bytes(std::span(found.noisy)),
                                 std::as_writable_bytes(std::span(found.clean))});
  return found;
}

// Returns mean and standard deviation.
std::pair<double, double> moments(const std::vector<std::uint8_t>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count - sum * sum / (count * count))};
}

}  // namespace

TEST_CASE("the target is the image, and the sample has noise of this deviation") {
  const NoisyImage found = read(0.1, 0, {.epoch = 2});
  CHECK(found.clean == std::vector<std::uint8_t>(pixels, 130));
  const auto [mean, deviation] = moments(found.noisy);
  CHECK(mean == doctest::Approx(130).epsilon(0.02));
  CHECK(deviation == doctest::Approx(25.5).epsilon(0.08));
  // The sum is limited to a byte, and does not wrap around.
  const NoisyImage much = read(1, 0, {});
  CHECK(std::ranges::count(much.noisy, 0) > 200);
  CHECK(std::ranges::count(much.noisy, 255) > 200);
}

TEST_CASE("noise is a function of seed, epoch and index") {
  const SampleContext context{.seed = 1};
  const NoisyImage found = read(0.1, 3, context);
  CHECK(read(0.1, 3, context) == found);
  CHECK(read(0.1, 3, {.seed = 1, .step = 5, .partner = 2}) == found);
  CHECK(read(0.1, 4, context).noisy != found.noisy);
  CHECK(read(0.1, 3, {.seed = 2}).noisy != found.noisy);
  NoisyImage later = read(0.1, 3, {.seed = 1, .epoch = 1});
  for (std::uint8_t& pixel : later.noisy) --pixel;
  CHECK(later.noisy != found.noisy);
}

TEST_CASE("noise needs images, and a deviation up to 1") {
  CHECK(user_error([] { NoisySamples(std::make_shared<GreyImages>(), 0); }) ==
        "noise is 0; give a number above 0 and at most 1");
  CHECK(user_error([] { NoisySamples(std::make_shared<GreyImages>(), NAN); }) ==
        "noise is nan; give a number above 0 and at most 1");
  CHECK(user_error([] { NoisySamples(std::make_shared<Rows>(), 0.5); }) ==
        "noise cannot be added to samples of float32[2]; give images of uint8");
  const NoisySamples samples(std::make_shared<GreyImages>(), 0.5);
  CHECK(to_string(samples.fields()) == "uint8[1,1,1001] samples, uint8[1,1,1001] targets");
}

}  // namespace plexaura::testing::noisy_samples_test
