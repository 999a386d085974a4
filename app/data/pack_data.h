#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models/config/config.h"

namespace plexaura {

struct PackOptions {
  std::filesystem::path folder;  // existing folder, which gets the shards
  std::uint64_t shard_bytes = std::uint64_t{256} << 20;
  // `resize` and `pixels` are for image folders, and only one of them may be given. Without them the files are packed as
  // they are.
  std::optional<std::int64_t> resize =
      {};  // pixels of the shorter side: larger images become JPEG of this size
  std::optional<std::int64_t> pixels = {};  // width and height of samples, prepared as for validation
  int quality = 95;                         // quality of the JPEG that `resize` makes
};

// Packs the data that the section `data` describes into shards: all samples, before they are split and scaled.
// Returns a line about each part: "a/train.index: 400 samples, 3 shards, 12345678 bytes". Throws UserError for
// options without effect, for data that cannot be packed, and for a sample that cannot be read.
std::string pack_data(const Config& config, const PackOptions& options);

}  // namespace plexaura
