#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/params/parameter_store.h"

namespace plexaura {

// Where a run stands, besides its weights: what it needs to go on as if it had never stopped. Random numbers
// are functions of seed and step, so that these two are the random state.
struct RunState {
  std::int64_t step = 0;           // updates done
  std::int64_t epoch = 0;          // of the next step, from 0
  std::int64_t step_in_epoch = 0;  // of the next step
  std::int64_t seed = 0;
  double epoch_loss = 0;  // sum over the samples of the open epoch
  double epoch_samples = 0;
  std::uint64_t data_origin = 0;  // a hash, see TrainerOptions
  std::int64_t samples = 0;       // of the training set
  std::int64_t batch_size = 0;    // over all ranks; with `samples`, what a step within an epoch means
  std::string optimizer = {};     // its name: what the state means
  // What a run that goes on may not change, by key of the configuration: "model.activation" is "relu". Empty:
  // nothing is compared.
  std::map<std::string, std::string> settings = {};
};

// A checkpoint is a folder DIR/checkpoint-000042 (the number of updates) with two files: weights.safetensors,
// parameters and buffers under their own names, with neither time nor path, and state.safetensors, the
// optimizer's state, the RunState and the checksum of the weights that they belong to. It appears under its name
// whole or not at all: a run that is killed while writing leaves the one before.
//
// Writes it, and only then removes the older ones but for the newest `keep`, and those of later steps, which
// an earlier run has left that this one does not go on from. A run that is killed in between leaves the
// earlier run's, too, and that is the newest then. Throws UserError where the folder cannot be written, the
// disk is full or a weight is not finite; the other checkpoints are untouched then. One process at
// a time: see FolderLock.
void save_checkpoint(const std::filesystem::path& directory, const ParameterStore& store,
                     const RunState& state, int keep = 1);

// Throws UserError that names the first parameter or buffer with a value that is not finite, as
// save_checkpoint() does.
void check_weights(const ParameterStore& store);

// Makes the folder, so that a place that cannot be written is found before anything is computed. Throws as
// save_checkpoint().
void prepare_checkpoints(const std::filesystem::path& directory);

// Reads the newest checkpoint into the store (placed, with its state arenas). Nothing where there is none.
// Throws UserError that names the file for one of another precision, another optimizer or other settings, for
// two files that were not written together, and with the tensor for one that does not fit the model.
// Checkpoints of older versions name neither settings nor the weights that the state belongs to: they are
// taken as they are.
std::optional<RunState> load_checkpoint(const std::filesystem::path& directory, ParameterStore& store,
                                        std::string_view optimizer = {},
                                        const std::map<std::string, std::string>& settings = {});

// The newest checkpoint's folder, if any.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& directory);

// Writes parameters and buffers under their names to a safetensors file, atomically. UserError for a weight
// that is not finite, and as AtomicFile.
void save_weights(const std::filesystem::path& path, const ParameterStore& store);

// Overwrites parameters and buffers from a safetensors file: every one of the store must be there under its
// name or an alias, of its shape, and finite; float32 and float64 are converted. Names of the file that the
// model lacks are an error, but for num_batches_tracked, a counter that other frameworks write and nobody
// here needs.
// What matches one of the patterns `skip` keeps its value, whatever the file says of it: in a pattern *
// stands for any letters, dots too, and ? for one. UserError for a pattern that no parameter of the store
// matches.
void load_weights(const std::filesystem::path& path, ParameterStore& store,
                  const std::vector<std::string>& skip = {});

}  // namespace plexaura
