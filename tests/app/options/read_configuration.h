#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace plexaura::testing {

// Two digits of one pixel each for training, and two for validation, as IDX files.
void write_digits(const std::filesystem::path& folder);
// Two classes of one image each for training, and for validation.
void write_images(const std::filesystem::path& folder);

using Keys = std::map<std::string, std::string>;  // and their defaults

// Everything that the programs read outside `model`, where these lines are all that is written.
Keys read(const std::string& data, const std::string& training, const std::string& distributed = "",
          const std::string& output = "");

}  // namespace plexaura::testing
