#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/params/parameter_store.h"
#include "training/checkpoints/weights.h"
#include "training/ranks/strategy_state.h"

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
  Settings settings = {};         // what a run that goes on may not change; empty: nothing is compared
  // Whether the samples of the open epoch come in random order; checkpoints of older versions do not say.
  std::optional<bool> shuffle = {};
  // A hash of the kernels that the run took, and the times by which it chose them, for a Tuner. Empty in
  // checkpoints of older versions; the second also where estimates chose.
  std::string kernels = {};
  std::string kernel_times = {};
  std::string bucket_bytes = {};  // in which an update is computed; empty in checkpoints of older versions
  std::string compression = {};   // that was chosen for this run by measurements; empty: none was
  SavedStrategy strategy = {};    // that of a checkpoint, until it was given back
  int strategy_ranks = 0;         // that kept it
  Metadata notes = {};            // more for the metadata of the weights, neither compared nor read again
};

// A checkpoint is a folder DIR/checkpoint-000042 (the number of updates) with two files: weights.safetensors,
// parameters and buffers under their own names, and the settings; and state.safetensors, the optimizer's state,
// the strategy's, the RunState and the checksum of the weights that they belong to. Neither has a date or a path. It appears under its name
// whole or not at all: a run that is killed while writing leaves the one before.
//
// Writes it, and only then removes the older ones but for the newest `keep` and those of the steps `held`, and those of later steps, which
// an earlier run has left that this one does not go on from; what holds other files than these two it leaves
// alone. A run that is killed in between leaves the earlier run's, too, and that is the newest then. Throws
// UserError where the folder cannot be written, the disk is full, something else stands where it goes, or a
// weight or its state is not finite; the other checkpoints are untouched then. One process at a time: see
// FolderLock.
void save_checkpoint(const std::filesystem::path& directory, const ParameterStore& store,
                     const RunState& state, int keep = 1, const std::set<std::int64_t>& held = {});

// That of the state after so many updates.
std::filesystem::path checkpoint_folder(const std::filesystem::path& directory, std::int64_t step);

// Makes the folder, so that a place that cannot be written is found before anything is computed. Throws as
// save_checkpoint(), and UserError that names what stands at the place of a checkpoint and is none: to save
// one would remove it.
void prepare_checkpoints(const std::filesystem::path& directory);

// Whether an entry of the folder of checkpoints may not be called so: checkpoints have such names, and what
// goes with them.
bool is_reserved_in_checkpoints(const std::filesystem::path& name);

// Reads the newest checkpoint into the store (placed, with its state arenas), so that an Optimizer of the store goes on
// with the step behind it, and of the strategy's state what is of use to `rank`. Rank 0 alone compares all of it with its
// checksum. Nothing where there is none.
// Throws UserError that names the file for one of another precision, another optimizer or other settings, for
// two files that were not written together, and with the tensor for one that does not fit the model.
// Checkpoints of older versions name neither settings nor the weights that the state belongs to: they are refused
// where there are settings to compare, and taken as they are where there are none.
std::optional<RunState> load_checkpoint(const std::filesystem::path& directory, ParameterStore& store,
                                        std::string_view optimizer = {}, const Settings& settings = {},
                                        int rank = 0);

// RunState::kernel_times of the newest checkpoint, which are needed before there are programs and a store to
// load it into. Empty where there are none, or the checkpoint cannot be read: load_checkpoint() will say so.
std::string kernel_times_of_newest(const std::filesystem::path& directory);

// RunState::compression likewise.
std::string compression_of_newest(const std::filesystem::path& directory);

// The updates that the newest checkpoint has made, if there is one.
std::optional<std::int64_t> newest_step(const std::filesystem::path& directory);

// The newest checkpoint's folder, if any.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& directory);

}  // namespace plexaura
