// Tests open_data() with samples that are mixed, have noise, or are drawn by the weights of their classes.

#include <array>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "tests/app/options/read_configuration.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::open_drawn_data_test {

TEST_CASE("mixed images have fields for their partners, and are not mixed in validation and evaluation") {
  const TemporaryFolder folder;
  write_images(folder / "images");
  const Config config = Config::parse(
      fmt::format("data: {{format: image_folder, path: {}, mixup_alpha: 0.2, cutmix_alpha: 1}}\n",
                  (folder / "images").string()),
      "test.yaml");
  const RunData data = open_data(config);
  CHECK(data.train->fields().size() == 4);
  CHECK(data.validation->fields() == data.train->fields());
  CHECK(data.preparation.starts_with("MixUp(0.2) or CutMix(1) of the training images after: random crop"));
  std::vector<std::byte> image(3 * 224 * 224);
  std::array<std::int64_t, 2> labels{};
  float share = 0;
  const auto read = [&](const SampleSource& samples) {
    samples.read_fields(0, {.step = 1, .partner = 1},
                        std::array{std::span(image), std::as_writable_bytes(std::span(labels).first(1)),
                                   std::as_writable_bytes(std::span(labels).last(1)),
                                   std::as_writable_bytes(std::span(&share, 1))});
    return share;
  };
  CHECK(read(*data.train) < 1);
  CHECK(read(*data.validation) == 1);
  CHECK(open_data(config, data.trained).train->fields().size() == 2);
  // A client trains with the classes of its server.
  CHECK(open_data(config, data.trained, DataUse::train).train->fields().size() == 4);
}

TEST_CASE("only classes are mixed") {
  const TemporaryFolder folder;
  write_images(folder / "images");
  CHECK(user_error([&] {
          open_data(Config::parse(fmt::format("model: {{task: reconstruction}}\n"
                                              "data: {{format: image_folder, path: {}, cutmix_alpha: 1}}\n",
                                              (folder / "images").string()),
                                  "test.yaml"));
        })
            .ends_with(
                "data.cutmix_alpha mixes the classes of images, and model.task is reconstruction; remove "
                "it, or set model.task to classification"));
}

TEST_CASE("with noise, the samples have targets of their own, also in validation and evaluation") {
  const TemporaryFolder folder;
  write_images(folder / "images");
  const auto config = [&](const std::string& task) {
    return Config::parse(
        fmt::format("model: {{task: {}}}\ndata: {{format: image_folder, path: {}, noise: 0.2}}\n", task,
                    (folder / "images").string()),
        "test.yaml");
  };
  const RunData data = open_data(config("reconstruction"));
  CHECK(to_string(data.train->fields()) == "uint8[3,224,224] samples, uint8[3,224,224] targets");
  CHECK(data.validation->fields() == data.train->fields());
  CHECK(data.preparation.ends_with("; then noise with deviation 0.2"));
  CHECK(open_data(config("reconstruction"), data.trained).validation->fields() == data.train->fields());
  CHECK(user_error([&] { open_data(config("classification")); })
            .ends_with("data.noise is 0.2, and model.task is classification; remove it, or set model.task to "
                       "reconstruction, which learns to remove the noise"));
}

TEST_CASE("the samples that were held out of data that is drawn are those of the evaluation") {
  const Config config =
      Config::parse(fmt::format("model: {{task: classification}}\n"
                                "data: {{format: csv, path: {}/models/iris.csv, sampling: balanced}}\n",
                                PLEXAURA_SOURCE),
                    "test.yaml");
  const RunData train = open_data(config);
  const RunData evaluated = open_data(config, train.trained);
  CHECK(train.is_cut);
  CHECK(evaluated.origin == train.origin);
  CHECK_FALSE(evaluated.sample_weights);
}

TEST_CASE("data.sampling draws each class as often as it says") {
  const TemporaryFolder folder;
  write_images(folder / "images");
  const auto open = [&](const std::string& keys) {
    return open_data(Config::parse(
        fmt::format("model: {{task: classification}}\ndata: {{format: image_folder, path: {}{}}}\n",
                    (folder / "images").string(), keys),
        "test.yaml"));
  };
  const RunData once = open("");
  const RunData balanced = open(", sampling: balanced");
  CHECK_FALSE(once.sample_weights);
  REQUIRE(balanced.sample_weights);
  CHECK(std::accumulate(balanced.sample_weights->begin(), balanced.sample_weights->end(), 0.0) ==
        doctest::Approx(2));
  const RunData weighted = open(", sampling: weighted, sampling_weights: [0, 3]");
  CHECK(weighted.sample_weights->front() == 0);
  CHECK(weighted.sample_weights->back() > 0);
  // --resume refuses other sampling.
  CHECK(balanced.origin != once.origin);
  CHECK(weighted.origin != balanced.origin);
  CHECK(user_error([&] {
          open(", sampling: weighted, sampling_weights: [1]");
        }).ends_with("data.sampling_weights has 1 numbers for 2 classes; give one for each: a, b"));
  CHECK(user_error([&] {
          open(", sampling: weighted, sampling_weights: [0, 0]");
        }).ends_with("data.sampling_weights has only zeros; give at least one class a number above 0"));
  CHECK(user_error([&] { open(", sampling: weighted"); }).find("data.sampling_weights is missing") !=
        std::string::npos);
  CHECK(user_error([&] { open(", sampling: balanced, shuffle: false"); })
            .ends_with("data.shuffle has no effect here, because data.sampling is balanced, which draws "
                       "samples at random; "
                       "remove it"));
}

}  // namespace plexaura::testing::open_drawn_data_test
