#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/params/parameter_store.h"
#include "training/files/safetensors.h"

namespace plexaura {

// What weights mean, by key of the configuration: "model.activation" is "relu". It is kept in the metadata of
// their file, as "setting.model.activation".
using Settings = std::map<std::string, std::string>;

// Writes parameters and buffers under their names to a safetensors file, atomically, with neither time nor
// path. `data_origin`: see TrainerOptions; 0: not known. Returns the file's checksum. UserError for a weight that
// is not finite, and as AtomicFile.
std::string save_weights(const std::filesystem::path& path, const ParameterStore& store,
                         const Settings& settings = {}, std::uint64_t data_origin = 0);

// For the weights of a run: throws UserError that names the first parameter or buffer with a value that is not
// finite. The second writes them as save_weights() does, and reads each once; `notes` are added to the metadata.
void check_weights(const ParameterStore& store);
std::string save_trained_weights(const std::filesystem::path& path, const ParameterStore& store,
                                 const Settings& settings, std::uint64_t data_origin, const Metadata& notes);

// Throws UserError, with the file that may be meant, where `path` is a folder, as that of a checkpoint.
void require_weights_file(const std::filesystem::path& path);

// Overwrites parameters and buffers from a safetensors file: every one of the store must be there under its
// name or an alias, of its shape, and finite; float32 and float64 are converted. Names of the file that the
// model lacks are an error, but for num_batches_tracked, a counter that other frameworks write and nobody
// here needs. Where all names of the file begin with "module." or "_orig_mod.", which PyTorch puts before the
// names of a model that it wraps, that is left out.
// What is_named_like() one of the patterns `skip`, a tied parameter by each of its names, keeps its value,
// whatever the file says of it. UserError for a pattern that fits neither a parameter of the store nor a tensor
// of the file, num_batches_tracked aside. Returns the metadata of the file.
Metadata load_weights(const std::filesystem::path& path, ParameterStore& store,
                      const std::vector<std::string>& skip = {});
// The same for a file that has been read.
void put_weights(const std::filesystem::path& path, const SafeTensors& file, ParameterStore& store,
                 const std::vector<std::string>& skip = {});

// The first parameter or buffer of the store that matches one of the patterns.
std::optional<std::string> first_skipped(const ParameterStore& store, const std::vector<std::string>& skip);

// The data_origin that a file of weights was saved with; empty where it was not known.
// `path` is named in the UserError for one that is no hash.
std::optional<std::uint64_t> data_origin_in(const Metadata& metadata, const std::filesystem::path& path);

// Whether a file of weights says with what settings it was made; files of other makers do not.
bool has_settings(const Metadata& metadata);

// Throws UserError that names file, key and both values where the settings of a file of weights are not
// `now`; `advice` ends the sentence. Nothing is compared where either has none.
void check_settings(const std::filesystem::path& path, const Metadata& metadata, const Settings& now,
                    std::string_view advice);

}  // namespace plexaura
