#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/params/parameter_store.h"
#include "training/checkpoints/weights.h"
#include "training/optimizers/plateau.h"
#include "training/ranks/best_epoch.h"
#include "training/ranks/strategy_state.h"

namespace plexaura {

// The progress of a run: all that a resumed run needs, besides the weights and the optimizer's state, to compute
// the same as a run without an interruption. Random numbers are functions of the seed and of the place in the run
// (epoch, step and sample), so the seed and the place are the random state.
struct RunState {
  std::int64_t step = 0;           // number of updates made
  std::int64_t epoch = 0;          // epoch of the next step, from 0
  std::int64_t step_in_epoch = 0;  // number of the next step in its epoch, from 0
  std::int64_t seed = 0;
  double epoch_loss = 0;  // sum of the losses of the current epoch so far
  // Divisor of epoch_loss: the number of samples, or the sum of LossOutputs::weight.
  double epoch_samples = 0;
  std::uint64_t data_origin = 0;  // hash of the data's origin: see TrainerOptions
  std::int64_t samples = 0;       // number of samples in the training set, or in an epoch of a stream
  // Number of samples of a step over all ranks. A run that resumes within an epoch must have the same number, and the
  // same `samples`, so that each step gets the samples that it would have had.
  std::int64_t batch_size = 0;
  std::string optimizer = {};  // name of the optimizer to which the state belongs
  Settings settings = {};      // settings that a resumed run may not change; empty: no setting is compared
  // TrainerOptions::shuffle of the run. Empty in checkpoints of older versions, and if no Trainer wrote it.
  std::optional<bool> shuffle = {};
  // A hash of the kernels that the run used, and the measured times by which it chose them, for a Tuner.
  // Empty in checkpoints of older versions, and if no Trainer wrote it; the times are also empty if kernels were
  // chosen by estimates.
  std::string kernels = {};
  std::string kernel_times = {};
  std::string bucket_bytes = {};  // TrainerOptions::bucket_bytes; empty as `kernels` is
  std::string compression = {};   // the compression that measurements chose for this run; empty: none
  // The state of the learning rate's Plateau, and the metric that it observes: see name_of(). Empty with
  // another schedule.
  std::optional<PlateauState> plateau = {};
  std::string plateau_metric = {};
  // The goal by which epochs are compared (see name_of()), and the best epoch so far. Empty if neither
  // this run nor the one that it continues has a goal.
  std::string goal = {};
  BestEpoch best = {};
  // The number of samples of the stream that the run has used; with a stream for each rank, the number of each rank.
  // Empty without a stream.
  std::vector<std::int64_t> streamed = {};
  SavedStrategy strategy = {};  // the strategy's state in a checkpoint, until the strategy takes it
  int strategy_ranks = 0;       // number of ranks whose state was saved
  Metadata notes = {};          // further metadata of the weights, which a resumed run does not read
};

// A checkpoint is a folder DIR/checkpoint-000042 (the number of updates) with two files. weights.safetensors
// contains parameters and buffers under their own names, and the settings. state.safetensors contains the
// state of the optimizer and of the strategy, the RunState, and the checksum of the weights that they belong
// to. Neither file contains a date or a path. A checkpoint appears under its name completely or not at all,
// see checkpoint_directory.h: a run that is killed while writing leaves the one before.
//
// save_checkpoint() writes a checkpoint, lets the link DIR/best lead to the one of RunState::best, if that is
// known, and then removes older ones. It keeps the newest `keep`, of which the new one is the first, the best one
// and those of the steps `held`. It also removes checkpoints of later steps, which an earlier run has left and from
// which this run did not resume. It does not remove a folder that contains other files. If the process is killed
// before the removal, the checkpoints of the earlier run remain, and are the newest ones. Throws UserError if the
// folder cannot be written, the disk is full, something else exists at the checkpoint's path, or a weight or its
// state is not finite; the other checkpoints do not change then. Only one process may write to a folder at a time: see
// FolderLock.
void save_checkpoint(const std::filesystem::path& directory, const ParameterStore& store,
                     const RunState& state, int keep = 1, const std::set<std::int64_t>& held = {});

// Reads the newest checkpoint into the store (placed, with its state arenas), so that an Optimizer of the
// store continues with the next step. Returns nothing if there is no checkpoint. Every rank reads the whole
// file of weights and compares it with its checksum. From the file of the state, a rank other than 0 reads only
// the tensors that `rank` needs; only rank 0 reads all of that file and compares it with its checksum.
//
// Throws UserError that names the file if a file is missing or damaged, if the checkpoint has another
// precision, another optimizer or other settings, or if its two files were not written together. If a tensor
// does not fit the model, the error also names the tensor. Checkpoints of older versions contain neither
// settings nor the checksum of the weights. They are refused if `settings` is not empty, and otherwise read
// without these checks. A checkpoint that does not name its precision or its optimizer is refused in any case.
std::optional<RunState> load_checkpoint(const std::filesystem::path& directory, ParameterStore& store,
                                        std::string_view optimizer = {}, const Settings& settings = {},
                                        int rank = 0);

// Returns RunState::kernel_times of the newest checkpoint. It is called before programs are compiled, when
// there is no store yet into which load_checkpoint() could read. Returns an empty text if there is no
// checkpoint, if it has no times, or if it cannot be read; load_checkpoint() will report the last case.
std::string kernel_times_of_newest(const std::filesystem::path& directory);

// Returns RunState::compression of the newest checkpoint, under the same conditions as kernel_times_of_newest().
std::string compression_of_newest(const std::filesystem::path& directory);

// Returns the name of the precision of the newest checkpoint, under the same conditions as kernel_times_of_newest().
std::string precision_of_newest(const std::filesystem::path& directory);

}  // namespace plexaura
