#include "tests/app/options/read_configuration.h"

#include <cstdint>
#include <fmt/format.h>
#include <vector>

#include "app/data/open_data.h"
#include "app/options/run_config.h"
#include "tests/support/temporary_folder.h"
#include "training/data/images/image.h"
#include "training/files/file.h"

namespace plexaura::testing {

void write_digits(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const std::string part : {"train", "t10k"}) {
    write_text(folder / (part + "-images-idx3-ubyte"),
               std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x01"
                           "ab",
                           18));
    write_text(folder / (part + "-labels-idx1-ubyte"), std::string("\0\0\x08\x01\0\0\0\x02\0\x01", 10));
  }
}

void write_images(const std::filesystem::path& folder) {
  const Image image{4, 4, std::vector<std::uint8_t>(48, 100)};
  for (const char* part : {"train/a", "train/b", "val/a", "val/b"}) {
    std::filesystem::create_directories(folder / part);
    write_file(folder / part / "1.jpg", encode_jpeg(image, 90));
  }
}

Keys read(const std::string& data, const std::string& training, const std::string& distributed,
          const std::string& output) {
  std::string text = fmt::format("data: {{{}}}\ntraining: {{epochs: 2, {}}}\n", data, training);
  if (!distributed.empty()) text += fmt::format("distributed: {{{}}}\n", distributed);
  if (!output.empty()) text += fmt::format("output: {{{}}}\n", output);
  const Config config = Config::parse(text, "test.yaml");
  const RunData opened = open_data(config);
  read_options(config, opened.train->size(), 2);
  config.check_all_used();
  return config.values();
}

}  // namespace plexaura::testing
