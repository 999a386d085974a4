#include "app/data/data_options.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace plexaura::testing::data_options_test {

namespace {

DataOptions read(const std::string& keys, DataUse use, Task task) {
  const Config config = Config::parse(fmt::format("data: {{path: x, {}}}\n", keys), "test.yaml");
  DataOptions options = read_data_options(config.section("data"), use, task);
  config.check_all_used();
  return options;
}

bool changes_samples(const DataOptions& options) {
  return options.images.augment || !options.images.operations.empty() || options.mix.mixes() ||
         options.noise > 0 || options.sampling != "once";
}

}  // namespace

TEST_CASE("to overfit, samples are the same in each epoch, with all keys that are allowed in training") {
  using enum Task;
  for (const auto& [keys, task] : {
           std::pair{"format: image_folder", classification},
           {"format: image_folder, augment: true, min_crop_scale: 0.5, horizontal_flip: true",
            classification},
           {"format: image_folder, augmentation: [{horizontal_flip: 0.5}]", classification},
           {"format: shards, augmentation: [{erasing: {}}]", classification},
           {"format: cifar, sampling: balanced", classification},
           {"format: cifar, mixup_alpha: 0.2, cutmix_alpha: 1", classification},
           {"format: idx, noise: 0.3", reconstruction},
           {"format: csv, sampling: balanced", classification},
           {"format: npz, sampling: weighted, sampling_weights: [1, 2]", classification},
       }) {
    CAPTURE(keys);
    CHECK(changes_samples(read(keys, DataUse::train, task)));
    CHECK_FALSE(changes_samples(read(keys, DataUse::overfit, task)));
  }
}

}  // namespace plexaura::testing::data_options_test
