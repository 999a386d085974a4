#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange/collective.h"
#include "training/checkpoints/checkpoint.h"
#include "training/data/sampler.h"
#include "training/data/stream_source.h"
#include "training/files/records.h"
#include "training/optimizers/schedule.h"
#include "training/programs/programs.h"
#include "training/ranks/skipped.h"

namespace plexaura {

// The parts of a run. All of them must outlive the Trainer, except for the store, which it shares. They must describe
// the same model and data on all ranks; `backend`, `collective` and `strategy` may differ.
struct TrainerParts {
  ModelBuilder model;
  ParameterStore& store;
  Backend& backend;
  // The training data. Not read on a rank that gets its samples from StrategyParts::courier. Null with `stream`.
  std::shared_ptr<const SampleSource> train;
  // The validation data, with the same fields; null: no validation.
  std::shared_ptr<const SampleSource> validation = {};
  Collective* collective = nullptr;  // the calls between ranks; null: the program runs alone
  Strategy* strategy = nullptr;      // null if the program runs alone
  // The training data as a stream, instead of `train`. Needs TrainerOptions::steps_per_epoch. The run ends early, after a
  // validation and a checkpoint, if the stream of a rank has no samples for another step.
  std::shared_ptr<const StreamSource> stream = {};
};

struct TrainerOptions {
  std::int64_t batch_size = 1;  // number of samples of a step over all ranks
  std::int64_t micro_batches = 1;
  // The most bytes that parameters, gradients, optimizer state, intermediate values and inputs of a step may
  // need on each rank. To keep to it, the backward pass computes values of the forward pass again, with the same
  // bits. The constructor of the Trainer throws StepMemoryError if a step cannot keep to it. Empty: no limit.
  std::optional<std::int64_t> memory = {};
  std::int64_t epochs = 1;
  std::optional<std::int64_t> steps = {};  // number of updates in all after which the run stops
  std::int64_t steps_per_epoch = 0;        // number of steps in an epoch; with a stream only
  // With OptimizerSpec::ema the run validates by the averages, and a checkpoint's file of weights holds them.
  // The store holds the weights that are trained; see with_averages(). The Trainer throws UserError if the
  // strategy has local scope or a courier, because the ranks then do not all make the same updates.
  OptimizerSpec optimizer = {};
  // A number or a Schedule. At the start of epoch E the schedule is at step E * N, where N is the number of
  // steps in an epoch of this run. So a run may be resumed with another batch size and a schedule made for
  // it, and continues with the same epoch of the schedule.
  Schedule learning_rate = 0.01;
  std::int64_t seed = 0;
  // A hash of the data's origin, which must not change when a run is resumed: which samples are held out, and
  // what the classes mean.
  std::uint64_t data_origin = 0;
  // The hash that older versions computed for the same data, if it differs. Checkpoints with this hash can be resumed,
  // too.
  std::optional<std::uint64_t> older_data_origin = {};
  Settings settings = {};  // see RunState
  Metadata notes = {};     // see RunState
  bool shuffle = true;     // true: an epoch visits samples in random order; no effect on a stream
  // With a stream only: the number of samples that shuffled() keeps. 1: the order of the stream. Each rank shuffles its
  // own stream.
  std::int64_t shuffle_buffer = 1;
  // The weights of the training samples, which are then drawn with replacement: see weighted_order(). Null: each sample
  // comes once in an epoch.
  std::shared_ptr<const std::vector<double>> weights = {};
  // Options for reading samples ahead: see LoaderOptions. They do not apply to a stream, which is read between the steps.
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;
  OnError on_error = OnError::fail;
  std::filesystem::path output = {};  // folder of the checkpoints; empty: none are written
  // True: run() may replace checkpoints in `output` of an earlier run, which was not resumed.
  bool replace = false;
  int keep = 1;  // number of newest checkpoints that are kept, in addition to the best one
  // The goal by which epochs are compared after validation. The best checkpoint is kept, and the link `best`
  // in `output` leads to it.
  std::optional<EpochGoal> goal = {};
  // Number of steps after which a checkpoint is saved, in addition to the end of each epoch.
  std::optional<std::int64_t> save_every = {};
  std::string compression = {};          // see RunState
  std::int64_t bucket_bytes = 25 << 20;  // bytes of gradients that are exchanged as one bucket
  // The number of steps after which the ranks check that they hold the same weights and optimizer state; they
  // also check before each checkpoint and at the end. 0: never. They check only if they stay equal by
  // themselves: all sum gradients with the same kernels, and the strategy neither realigns weights nor shows
  // other weights. See training/ranks/verify_ranks.h.
  std::int64_t verify_every = 500;
  // With a strategy of local scope: the seconds between two sums of the ranks' metrics. The observers get the records of
  // steps after each sum. 0: after each step. See TailSums.
  double report_seconds = 1;
  // The number of this rank in messages. Empty: its index among the ranks that train.
  std::optional<int> number_of_rank = {};
  // True: a loss that is not finite ends the run without an error, and weights that are not finite are no
  // error. The run must save nothing. It serves to find the limits of the learning rate.
  bool ends_on_divergence = false;
  bool watch = false;   // true: the first NaN or infinite number ends the run, and the error names the op
  bool strict = false;  // true: an op that would run on the host is an error, see CompileOptions
  Profile* profile = nullptr;   // records an event for each instruction; slows the run down
  Tuner* tuner = nullptr;       // measures kernels: see ProgramOptions
  bool parts_may_move = false;  // true: regroup() may be called with TakenParts
  // True if a run that is resumed with other bucket_bytes may round differently.
  bool buckets_change_bits = true;
  // True for a spare rank, which does not train from the start. In the regroup() in which it replaces a lost rank, it
  // makes its programs and gets weights, optimizer state and progress from the other ranks.
  bool is_spare = false;
};

// The parts of each step that a rank computes after ranks were lost. A step has as many parts as there were ranks at the
// start. The ranks add up the parts' gradients in the order in which the ranks at the start would have done, so that the
// run ends with the same bits.
struct TakenParts {
  std::int64_t parts = 1;  // number of parts of a step
  Slice own = {0, 1};
};

// Gets the records of a run. It is called on every rank with figures over all ranks, so only one rank needs to show them.
// If StrategyParts::dealer deals out the data, the figures of a step are this rank's own. If an observer throws on any
// rank, the run ends on all ranks with that error, after the other observers have got the same record. An observer must
// not call a Collective.
class TrainingObserver {
 public:
  virtual ~TrainingObserver();
  // During step() the store's weights may be in the middle of an update. During epoch() they are complete.
  virtual void step(const StepRecord& /*record*/, std::int64_t /*steps_in_epoch*/) {}
  virtual void epoch(const EpochRecord& /*record*/) {}
};

struct TrainingResult {
  std::int64_t steps = 0;      // number of updates in all, including updates before the run was resumed
  std::int64_t steps_now = 0;  // number of updates of this run
  std::optional<EpochRecord> last_epoch;
  BestEpoch best = {};           // the best epoch by TrainerOptions::goal; unset without a goal
  bool is_exhausted = false;     // true: the run ended because the goal's patience was used up
  bool stream_ended = false;     // true: the run ended because a stream had no samples for another step
  double images_per_second = 0;  // of all ranks; median of the last RecentValues::most steps
  double stall_share = 0;        // share of the time that was spent waiting for data, from 0 to 1
  int signal = 0;                // the signal that ended the run; 0: none
  // The samples that could not be read (OnError::skip).
  Skipped skipped = {};             // skipped samples of the training data; other samples replaced them
  Skipped skipped_validation = {};  // skipped samples of the validation data; they were left out
};

}  // namespace plexaura
