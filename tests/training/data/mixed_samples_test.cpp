#include "training/data/mixed_samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "training/data/loader.h"

namespace plexaura::testing::mixed_samples_test {

namespace {

constexpr std::int64_t side = 8;

// Image i has the value 10 i + epoch everywhere, and the label i.
class FlatImages final : public DatasetOf<std::uint8_t> {
 public:
  explicit FlatImages(std::int64_t size, std::int64_t broken = -1)
      : names_(static_cast<std::size_t>(size), "x"), broken_(broken) {}
  std::int64_t size() const override { return std::ssize(names_); }
  Shape sample_shape() const override { return Shape{1, side, side}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index; }
  void read(std::int64_t index, const SampleContext& context, std::span<std::uint8_t> sample,
            std::int64_t& label) const override {
    if (index == broken_) throw UserError("broken");
    std::ranges::fill(sample, static_cast<std::uint8_t>(10 * index + context.epoch));
    label = index;
  }

 private:
  std::vector<std::string> names_;
  std::int64_t broken_;
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

// One sample as a loader returns it.
struct MixedSample {
  std::vector<std::uint8_t> image;
  std::int64_t label = 0;
  std::int64_t partner = 0;
  float share = 0;
  bool operator==(const MixedSample&) const = default;
};

std::vector<MixedSample> samples_of(const std::shared_ptr<const SampleSource>& source, LoaderOptions options,
                                    std::int64_t steps) {
  options.batch_size = 5;
  Loader loader(source, options);
  std::vector<MixedSample> samples;
  for (std::int64_t step = 0; step < steps; ++step)
    for (const MicroBatch& batch : loader.next().micro_batches)
      for (std::int64_t i = 0; i < batch.samples; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto image = batch.fields[0].as<std::uint8_t>().subspan(at * side * side, side * side);
        samples.push_back({{image.begin(), image.end()},
                           batch.fields[1].as<std::int64_t>()[at],
                           batch.fields[2].as<std::int64_t>()[at],
                           batch.fields[3].as<float>()[at]});
      }
  return samples;
}

std::shared_ptr<const MixedSamples> mixed(const MixOptions& options, std::int64_t broken = -1) {
  return std::make_shared<MixedSamples>(std::make_shared<FlatImages>(11, broken), options);
}

}  // namespace

TEST_CASE("each sample is mixed with the one before it in the batch, the first one with the last one") {
  const auto samples = samples_of(mixed({.mixup_alpha = 1}), {}, 3);
  REQUIRE(samples.size() == 11);
  for (const auto& [first, count] : {std::pair{0, 5}, {5, 5}, {10, 1}})
    for (int i = 0; i < count; ++i) {
      const MixedSample& sample = samples[static_cast<std::size_t>(first + i)];
      CHECK(sample.partner == samples[static_cast<std::size_t>(first + (i + count - 1) % count)].label);
      CHECK(sample.share == samples[static_cast<std::size_t>(first)].share);
      const double value = 10.0 * (sample.share * static_cast<double>(sample.label) +
                                   (1 - sample.share) * static_cast<double>(sample.partner));
      for (const std::uint8_t pixel : sample.image) CHECK(std::abs(pixel - value) <= 0.501);
    }
  CHECK(samples[0].share != samples[5].share);
}

TEST_CASE("CutMix takes a rectangle of the partner, and the share of the label is that of the pixels") {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const MixedSample& sample : samples_of(mixed({.cutmix_alpha = 1}), {.seed = seed}, 3)) {
      const auto own = std::ranges::count(sample.image, static_cast<std::uint8_t>(10 * sample.label));
      const auto other = std::ranges::count(sample.image, static_cast<std::uint8_t>(10 * sample.partner));
      if (sample.label == sample.partner) continue;
      CHECK(own + other == side * side);
      CHECK(sample.share == doctest::Approx(static_cast<double>(own) / (side * side)));
    }
}

TEST_CASE("mixed samples do not depend on workers, ranks and micro-batches, nor on where a run was resumed") {
  const auto source = mixed({.mixup_alpha = 0.4, .cutmix_alpha = 0.6});
  const auto whole = samples_of(source, {.seed = 3, .workers = 0}, 6);
  CHECK(samples_of(source, {.seed = 3, .workers = 3}, 6) == whole);
  CHECK(samples_of(source, {.micro_batches = 2, .seed = 3}, 6) == whole);
  const auto rest = samples_of(source, {.seed = 3, .first_step = 1}, 5);
  CHECK(std::equal(rest.begin(), rest.end(), whole.begin() + 5));
  std::vector<MixedSample> joined;
  const auto first = samples_of(source, {.ranks = 2, .rank = 0, .seed = 3}, 1);
  const auto second = samples_of(source, {.ranks = 2, .rank = 1, .seed = 3}, 1);
  std::ranges::copy(first, std::back_inserter(joined));
  std::ranges::copy(second, std::back_inserter(joined));
  CHECK(std::equal(joined.begin(), joined.end(), whole.begin()));
  CHECK(samples_of(source, {.seed = 4}, 6) != whole);
}

TEST_CASE(
    "without mixing the fields are the same, and a partner that cannot be read leaves a sample as it is") {
  for (const MixedSample& sample : samples_of(mixed({}), {.shuffle = false}, 3)) {
    CHECK(sample.partner == sample.label);
    CHECK(sample.share == 1);
    CHECK(sample.image ==
          std::vector<std::uint8_t>(side * side, static_cast<std::uint8_t>(10 * sample.label)));
  }
  const auto samples = samples_of(mixed({.mixup_alpha = 1}, 2),
                                  {.shuffle = false, .on_error = OnError::skip, .replace = false}, 1);
  REQUIRE(samples.size() == 4);
  CHECK(samples[2].label == 3);
  CHECK(samples[2].partner == 3);
  CHECK(samples[2].share == 1);
  CHECK(samples[3].partner == 3);
  CHECK(user_error([] { samples_of(mixed({.mixup_alpha = 1}, 2), {.shuffle = false}, 1); }) == "broken");
}

TEST_CASE("shares have the distribution Beta(alpha, alpha)") {
  for (const double alpha : {0.2, 1.0, 3.0}) {
    double sum = 0;
    double squares = 0;
    constexpr int draws = 20000;
    for (std::uint64_t i = 0; i < draws; ++i) {
      Random random{i};
      const double share = draw_mix({.mixup_alpha = alpha}, side, side, random).share;
      sum += share;
      squares += (share - 0.5) * (share - 0.5);
    }
    CHECK(sum / draws == doctest::Approx(0.5).epsilon(0.02));
    CHECK(squares / draws == doctest::Approx(1 / (4 * (2 * alpha + 1))).epsilon(0.03));
  }
}

TEST_CASE("samples that are no images, and impossible strengths, are errors") {
  CHECK(user_error([] { MixedSamples(std::make_shared<Rows>(), {.mixup_alpha = 1}); }) ==
        "samples of float32[2] cannot be mixed; give images, uint8[channels, height, width]");
  CHECK(user_error([] { mixed({.mixup_alpha = -1}); }) == "mixup_alpha is -1; give a number from 0 to 1000");
}

}  // namespace plexaura::testing::mixed_samples_test
