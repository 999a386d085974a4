#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace plexaura {

// The functions below may be called by several threads at once, for one path where none of them writes it.

using Metadata = std::map<std::string, std::string>;  // free text by key

// The contents of a file in the safetensors format: named tensors, in the order of its header, and free text
// by key. The eight dtypes of Plexaura are F64, F32, BF16, F16, I64, I32, U8 and BOOL there.
struct SafeTensors {
  std::vector<std::pair<std::string, Tensor>> tensors;
  Metadata metadata;
};

// What the header alone tells.
struct SafeTensorsHeader {
  std::vector<std::pair<std::string, TensorType>> types;
  Metadata metadata;
};

// Both throw UserError that names the file (and the tensor) for anything that is not a well-formed file:
// nothing of it is believed before it is checked, and no more memory is taken than the file has bytes. Where
// the file has the checksum of write_safetensors, read_safetensors compares it with the data; neither shows
// it in the metadata.
SafeTensors read_safetensors(const std::filesystem::path& path);
SafeTensorsHeader read_safetensors_header(const std::filesystem::path& path);

// Only the tensors that are wanted, by their names. Without `verifies` the others are not read, and nothing is compared with
// the checksum.
SafeTensors read_safetensors(const std::filesystem::path& path,
                             const std::function<bool(const std::string&)>& wanted, bool verifies = true);

// The sum that write_safetensors() puts into the metadata: sixteen digits, the FNV-1a hash of the tensors'
// bytes in their order.
std::string checksum_of(const SafeTensors& contents);

// Writes atomically (see AtomicFile, also for the errors). The same contents give the same bytes: neither
// time nor path is written. Tensors keep their order in the header; their data lie by falling element size,
// so that each is aligned. The text "checksum.fnv1a64" is added to the metadata; it is returned. Throws
// UserError for a name given twice, the name
// "__metadata__" or text that is not UTF-8.
std::string write_safetensors(const std::filesystem::path& path, const SafeTensors& contents);

}  // namespace plexaura
