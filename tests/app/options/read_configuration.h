#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace plexaura::testing {

// Writes IDX files with two digits of one pixel each for training, and two for validation.
void write_digits(const std::filesystem::path& folder);
// Writes two classes with one image each for training, and the same for validation.
void write_images(const std::filesystem::path& folder);

using Keys = std::map<std::string, std::string>;  // name of a key -> its value

// Returns everything that the programs read outside `model` if the file consists of these sections.
Keys read(const std::string& data, const std::string& training, const std::string& distributed = "",
          const std::string& output = "");

}  // namespace plexaura::testing
