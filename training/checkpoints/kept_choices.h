#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plexaura {

// What earlier runs have chosen by measurements, in a file of the user's cache: a line of text for each key. A file that
// cannot be read, or is damaged, holds nothing.

// Empty where nothing is kept.
std::string kept_choice(const std::filesystem::path& file, std::uint64_t key);

// Puts this choice in the place of an older one with this key, and leaves out the oldest of more than 1,000. A file that
// cannot be written is no error: returns a sentence about it, nothing where all is well.
std::string keep_choice(const std::filesystem::path& file, std::uint64_t key, std::string_view choice);

}  // namespace plexaura
