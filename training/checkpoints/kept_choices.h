#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plexaura {

// Choices that earlier runs have made by measurements, in a file of the user's cache with one line for each
// key. Damaged lines are ignored. A file that cannot be read, or begins with another title, counts as empty.

// Returns the choice for this key, or an empty text.
std::string kept_choice(const std::filesystem::path& file, std::uint64_t key);

// Stores a choice and replaces an older one with the same key. Keeps the newest 1,000 choices. If the file
// cannot be written, returns a sentence about that, and throws nothing; otherwise returns an empty text.
std::string keep_choice(const std::filesystem::path& file, std::uint64_t key, std::string_view choice);

}  // namespace plexaura
