#include "app/data/open_pixels.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "app/data/open_data.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace plexaura::testing::open_pixels_test {

TEST_CASE("CIFAR-100 is opened with the labels that the key names") {
  const TemporaryFolder folder;
  const std::string pixels(3072, 'x');
  folder.write("coarse_label_names.txt", "fish\nflowers\n");
  folder.write("fine_label_names.txt", "orchid\nray\nrose\n");
  folder.write("train.bin", "\1\2" + pixels + std::string("\0\1", 2) + pixels);
  folder.write("test.bin", "\1\2" + pixels);
  const auto open = [&](const std::string& keys) {
    const Config config = Config::parse(
        fmt::format("data: {{format: cifar, path: {}{}}}\n", folder.path().string(), keys), "test.yaml");
    RunData data = open_data(config);
    config.check_all_used();
    return data;
  };
  const RunData fine = open("");
  CHECK(fine.trained.classes == std::vector<std::string>{"orchid", "ray", "rose"});
  CHECK(fine.train->size() == 2);
  CHECK(fine.validation->size() == 1);
  CHECK(fine.pixels.mean.size() == 3);
  CHECK(open(", cifar_labels: coarse").trained.classes == std::vector<std::string>{"fish", "flowers"});
  CHECK(open(", cifar_labels: coarse").origin != fine.origin);
  CHECK(user_error([&] { open(", mean: [0.5]"); }).find("data.mean has 1 numbers; give three") !=
        std::string::npos);
}

}  // namespace plexaura::testing::open_pixels_test
