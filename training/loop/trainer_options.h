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
#include "training/files/records.h"
#include "training/optimizers/schedule.h"
#include "training/programs/programs.h"
#include "training/ranks/skipped.h"

namespace plexaura {

// The parts of a run. All of them must outlive the Trainer, except for the store, which it shares. They must be equal on
// all ranks, except for `collective` and `strategy`.
struct TrainerParts {
  ModelBuilder model;
  ParameterStore& store;
  Backend& backend;
  // Not read on a rank that gets its samples from StrategyParts::courier.
  std::shared_ptr<const SampleSource> train;
  std::shared_ptr<const SampleSource> validation = {};  // with the same fields; null: no validation
  Collective* collective = nullptr;                     // null: the program runs alone
  Strategy* strategy = nullptr;                         // null if the program runs alone
};

struct TrainerOptions {
  std::int64_t batch_size = 1;  // samples of a step, summed over all ranks
  std::int64_t micro_batches = 1;
  std::int64_t epochs = 1;
  std::optional<std::int64_t> steps = {};  // the run stops after this many updates in all
  // With OptimizerSpec::ema the run validates by the averages, and a checkpoint's file of weights holds them.
  // The store holds the weights that are trained; see with_averages(). Throws UserError for a strategy with
  // which ranks do not all update by the same sums.
  OptimizerSpec optimizer = {};
  // A number or a Schedule. At the start of epoch E the schedule is at step E * N, where N is the number of steps in an
  // epoch of this run. So a run that is resumed with another batch size, and a schedule made for it, continues with the
  // same epoch of the schedule.
  Schedule learning_rate = 0.01;
  std::int64_t seed = 0;
  // A hash of what must not change when a run is resumed: which samples are held out, and what the classes mean.
  std::uint64_t data_origin = 0;
  // The hash that older versions computed for the same data, if it differs. Checkpoints with this hash can be resumed,
  // too.
  std::optional<std::uint64_t> older_data_origin = {};
  Settings settings = {};  // see RunState
  Metadata notes = {};     // see RunState
  bool shuffle = true;
  // The weights of the training samples, which are then drawn with replacement: see weighted_order(). Null: each sample
  // comes once in an epoch.
  std::shared_ptr<const std::vector<double>> weights = {};
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;
  OnError on_error = OnError::fail;
  std::filesystem::path output = {};  // the folder of checkpoints; empty: none are written
  // True: run() may replace the checkpoints of an earlier run in `output`, which was not resumed.
  bool replace = false;
  int keep = 1;  // how many checkpoints are kept, besides the best one
  // Compares epochs by the validation. The best checkpoint is kept, and the link `best` in `output` leads to it.
  std::optional<EpochGoal> goal = {};
  std::optional<std::int64_t> save_every = {};  // also saves whenever the run has made this many more steps
  std::string compression = {};                 // see RunState
  std::int64_t bucket_bytes = 25 << 20;         // of gradients that are exchanged as one piece
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
  // A loss that is not finite ends the run without an error, and weights that are not finite are no error.
  // Nothing may be saved then: for a run that looks for the limits of its learning rate.
  bool ends_on_divergence = false;
  bool watch = false;           // ends the run at the first NaN or infinite number, and names the op
  bool strict = false;          // an op that would run on the host is an error: see CompileOptions
  Profile* profile = nullptr;   // an event per instruction; slows the run down
  Tuner* tuner = nullptr;       // of kernels: see ProgramOptions
  bool parts_may_move = false;  // regroup() may be called with TakenParts
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
  std::int64_t parts = 1;  // of a step
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
  std::int64_t steps = 0;      // updates in all, including those before the run was resumed
  std::int64_t steps_now = 0;  // of this run
  std::optional<EpochRecord> last_epoch;
  BestEpoch best = {};           // by TrainerOptions::goal; not known without one
  bool is_exhausted = false;     // the run ended because the goal's patience was used up
  double images_per_second = 0;  // median over the last RecentValues::most steps
  double stall_share = 0;        // the share of the time that was spent waiting for data
  int signal = 0;                // the signal that ended the run; 0 if none did
  // Samples that could not be read (OnError::skip).
  Skipped skipped = {};             // of the training data: replaced by others
  Skipped skipped_validation = {};  // of the validation data: left out
};

}  // namespace plexaura
