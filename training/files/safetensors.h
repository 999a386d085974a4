#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace plexaura {

// The functions below may be called by several threads at the same time, for one path only if none of them
// writes it.

using Metadata = std::map<std::string, std::string>;  // maps keys to free text

// The contents of a file in the safetensors format: named tensors, in the order of its header, and texts by
// key. In a file, the eight dtypes of Plexaura are F64, F32, BF16, F16, I64, I32, U8 and BOOL.
struct SafeTensors {
  std::vector<std::pair<std::string, Tensor>> tensors;
  Metadata metadata;
};

// The names, types and metadata in the header of a file.
struct SafeTensorsHeader {
  std::vector<std::pair<std::string, TensorType>> types;
  Metadata metadata;
};

// read_safetensors() and read_safetensors_header() throw UserError that names the file (and the tensor) for anything but
// a well-formed file. They check all numbers in the file before they use them, and allocate no more memory for tensors
// than the file has bytes. If the file contains the checksum of write_safetensors(), read_safetensors() compares it
// with the data. The metadata that they return does not contain the checksum.
SafeTensors read_safetensors(const std::filesystem::path& path);
SafeTensorsHeader read_safetensors_header(const std::filesystem::path& path);

// Returns only the tensors for whose names `wanted` returns true. With `verifies`, reads the other tensors, too, to compare
// the checksum. Without it, skips them and compares no checksum.
SafeTensors read_safetensors(const std::filesystem::path& path,
                             const std::function<bool(const std::string&)>& wanted, bool verifies = true);

// Returns the checksum that write_safetensors() adds to the metadata: the FNV-1a hash of the tensors' bytes,
// in their order, as sixteen hexadecimal digits.
std::string checksum_of(const SafeTensors& contents);

// Writes a file atomically (see AtomicFile, also for the errors). The same contents give the same bytes: no
// time and no path is written. Tensors keep their order in the header; their data are ordered by decreasing
// element size, so that each is aligned. Returns the checksum, which the metadata has as "checksum.fnv1a64".
// Throws UserError for a name that is given twice, for the name "__metadata__", and for text that is not
// UTF-8.
std::string write_safetensors(const std::filesystem::path& path, const SafeTensors& contents);

}  // namespace plexaura
