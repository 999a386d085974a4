#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"
#include "training/files/safetensors.h"

namespace plexaura {

// The header of a safetensors file as a table. For safetensors.cpp and its tests.
struct SafeTensorsTable {
  struct Entry {
    std::string name;
    TensorType type;
    std::uint64_t begin = 0;  // offset in bytes from the start of the data
  };
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

// Returns the table in `text`, checked completely against the `data_bytes` that follow it: types and byte
// ranges agree, and the ranges cover the data without overlap or gap. Throws UserError that names `path` and
// the tensor.
SafeTensorsTable parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                          const std::filesystem::path& path);

// Returns the text of a table, padded with spaces to a multiple of 8 bytes.
std::string format_safetensors_header(const SafeTensorsTable& table, const std::filesystem::path& path);

}  // namespace plexaura
