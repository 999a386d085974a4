#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/params/parameter_store.h"
#include "training/checkpoints/settings.h"
#include "training/files/safetensors.h"

namespace plexaura {

// Writes parameters and buffers under their names to a safetensors file, atomically, without a time or a
// path. For `data_origin` see TrainerOptions; 0 means unknown. Returns the file's checksum. Throws UserError
// for a weight that is not finite, and as AtomicFile does.
std::string save_weights(const std::filesystem::path& path, const ParameterStore& store,
                         const Settings& settings = {}, std::uint64_t data_origin = 0);

// The checks of save_weights() for a run. check_weights() throws UserError that names the first parameter or
// buffer with a value that is not finite. save_trained_weights() makes the same check and writes the weights
// as save_weights() does, and reads each weight only once. It adds `notes` to the metadata.
void check_weights(const ParameterStore& store);
std::string save_trained_weights(const std::filesystem::path& path, const ParameterStore& store,
                                 const Settings& settings, std::uint64_t data_origin, const Metadata& notes);

// Throws UserError if `path` is a folder, such as that of a checkpoint. The error names the file that the
// user may mean.
void require_weights_file(const std::filesystem::path& path);

// Overwrites parameters and buffers from a safetensors file. The file must contain each parameter and buffer
// of the store under its name or an alias, with the same shape and with finite values. Values of any floating
// dtype are converted. A name that the model does not have is an error, except num_batches_tracked, a counter
// that other frameworks write and that is not needed here. If all names in the file begin with "module." or
// "_orig_mod.", the prefixes of PyTorch's wrappers, and the model does not have the first of them, the prefix is
// ignored. A parameter or buffer that matches one of the patterns `skip` (see is_named_like(); a tied parameter
// matches by each of its names) keeps its value, whatever the file contains, and a tensor of the file whose name
// matches one is ignored. Throws UserError for a pattern that matches neither a parameter of the store nor a tensor of
// the file, not counting num_batches_tracked. Returns the metadata of the file.
Metadata load_weights(const std::filesystem::path& path, ParameterStore& store,
                      const std::vector<std::string>& skip = {});
// Overwrites as load_weights() does, for a caller whose user cannot skip parameters: no error advises it.
Metadata load_all_weights(const std::filesystem::path& path, ParameterStore& store);
// Overwrites as load_all_weights() does, from a file that was already read.
void put_weights(const std::filesystem::path& path, const SafeTensors& file, ParameterStore& store);

// Returns the first parameter or buffer of the store that matches one of the patterns.
std::optional<std::string> first_skipped(const ParameterStore& store, const std::vector<std::string>& skip);

// Returns the data_origin with which a file of weights was saved; empty if it was unknown. Throws UserError,
// which names `path`, if the value is no hash.
std::optional<std::uint64_t> data_origin_in(const Metadata& metadata, const std::filesystem::path& path);

}  // namespace plexaura
