#include "training/checkpoints/settings.h"

#include <doctest/doctest.h>

#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/training/tiny_store.h"
#include "training/checkpoints/weights.h"

namespace plexaura::testing::settings_test {

namespace fs = std::filesystem;

TEST_CASE("weights say what they were made with, and other settings are refused") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w";
  const Settings settings{{"class 0", "'cat'"}, {"model.name", "mlp"}};
  const auto check = [&](const Settings& now) {
    check_settings(path, read_safetensors_header(path).metadata, now, "give the same");
  };
  save_weights(path, TinyStore(1).store, settings);
  check(settings);
  CHECK(user_error([&] {
          check({{"class 0", "'dog'"}, {"model.name", "mlp"}});
        }) == path.string() + " was made with class 0 'cat' and now it is 'dog'; give the same");
  CHECK(user_error([&] {
          check({{"model.name", "mlp"}});
        }) == path.string() + " was made with class 0 'cat' and now it is not given; give the same");
  save_weights(path, TinyStore(1).store);
  check(settings);
}

TEST_CASE("settings that another format of data lacks are not compared") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w";
  const auto check = [&](const Settings& then, const Settings& now) {
    save_weights(path, TinyStore(1).store, then);
    return user_error(
        [&] { check_settings(path, read_safetensors_header(path).metadata, now, "give the same"); });
  };
  const Settings grey{{"data.mean", "0"}, {"model.name", "mlp"}};
  CHECK(check(grey, {{"data.mean", "[0, 0, 0]"}, {"model.name", "mlp"}}).empty());
  CHECK(check(grey, {{"model.name", "mlp"}}).empty());
  CHECK(
      check({{"data.mean", "0"}, {"data.stddev", "[1, 1.0]"}, {"model.name", "mlp"}}, {{"model.name", "mlp"}})
          .empty());
  const Settings scaled{{"data.mean", "0.1307"}, {"model.name", "mlp"}};
  CHECK(check(scaled, {{"model.name", "mlp"}})
            .ends_with(" was made with data.mean 0.1307 and now it is not given; give the same"));
  CHECK(check({{"model.name", "mlp"}}, {{"data.stddev", "0.3081"}, {"model.name", "mlp"}})
            .ends_with(" was made with data.stddev not given and now it is 0.3081; give the same"));
  const Settings filled{{"data.missing", "\"value\""}, {"data.missing_value", "3"}};
  CHECK(check(filled, {{"model.name", "mlp"}}).find("model.name") != std::string::npos);
  CHECK(check(filled, {{"data.standardise_targets", "true"}}).empty());
  CHECK(check(filled, {{"data.missing", "\"value\""}})
            .ends_with("with data.missing_value 3 and now it is not given; give the same"));
  CHECK(check(grey, {{"data.mean", "[0, 0.5, 0]"}, {"model.name", "mlp"}})
            .ends_with(" was made with data.mean 0 and now it is [0, 0.5, 0]; give the same"));
}

TEST_CASE("the noise of samples does not count for files that are predicted") {
  const TemporaryFolder folder;
  const fs::path path = folder / "w";
  save_weights(path, TinyStore(1).store, {{"data.noise", "0.3"}, {"model.name", "unet"}});
  const auto check = [&](const Settings& now, WeightsUse use) {
    return user_error(
        [&] { check_settings(path, read_safetensors_header(path).metadata, now, "give the same", use); });
  };
  const Settings quiet{{"model.name", "unet"}};
  CHECK(check(quiet, WeightsUse::samples_of_data)
            .ends_with(" was made with data.noise 0.3 and now it is not given; give the same"));
  CHECK(check(quiet, WeightsUse::files).empty());
  CHECK(check({{"data.noise", "0.1"}, {"model.name", "mlp"}}, WeightsUse::files)
            .ends_with(" was made with model.name unet and now it is mlp; give the same"));
}

TEST_CASE("weights keep the settings of data that define what they mean") {
  const Settings all{{"data.mean", "0.5"},        {"data.missing", "mean"}, {"data.missing_value", "0"},
                     {"data.noise", "0"},         {"data.path", "t.csv"},   {"data.standardise", "true"},
                     {"training.batch_size", "5"}};
  CHECK(data_settings_of_weights(all, false) ==
        Settings{{"data.missing", "\"mean\""}, {"data.standardise", "true"}});
  CHECK(data_settings_of_weights(all, true).at("data.mean") == "0.5");
  const Settings other{{"data.missing", "\"value\""}, {"data.missing_value", "3"}, {"data.noise", "0.2"}};
  CHECK(data_settings_of_weights(other, false) == other);
}

}  // namespace plexaura::testing::settings_test
