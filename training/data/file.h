#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace plexaura {

// The bytes of a file. Throws UserError that names it when it cannot be read. Thread-safe.
std::vector<std::uint8_t> read_file(const std::filesystem::path& path);

// Writes a file anew, whole: throws UserError that names it when it cannot be made or a byte of it cannot be
// written. What was written so far is removed then. Thread-safe for different paths.
void write_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

}  // namespace plexaura
