#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/exchange/collective.h"
#include "training/checkpoints/checkpoint.h"
#include "training/data/sampler.h"
#include "training/files/records.h"
#include "training/optimizers/schedule.h"
#include "training/programs/programs.h"
#include "training/ranks/skipped.h"

namespace plexaura {

// What a run is made of. Everything outlives the Trainer but the store, which it shares. All ranks bring equal parts but for `collective`
// and `strategy`.
struct TrainerParts {
  ModelBuilder model;
  ParameterStore& store;
  Backend& backend;
  // Not read on a rank that gets its samples from StrategyParts::courier.
  std::shared_ptr<const SampleSource> train;
  std::shared_ptr<const SampleSource> validation = {};  // of the same fields; null: nothing is validated
  Collective* collective = nullptr;                     // null: the program runs alone
  Strategy* strategy = nullptr;                         // null where the program runs alone
};

struct TrainerOptions {
  std::int64_t batch_size = 1;  // samples of a step over all ranks
  std::int64_t micro_batches = 1;
  std::int64_t epochs = 1;
  std::optional<std::int64_t> steps = {};  // stop after so many updates in all
  OptimizerSpec optimizer = {};
  // A number, or a Schedule, which is in step E * N of it where epoch E begins that has N steps. So a run that goes on with
  // batches of another size goes on from the same epoch of a schedule that was made for them.
  Schedule learning_rate = 0.01;
  std::int64_t seed = 0;
  // Hash of what must be the same when a run goes on: which samples are held out, what classes mean.
  std::uint64_t data_origin = 0;
  // What older versions wrote for the same data, if it differs: a checkpoint with it is resumed, too.
  std::optional<std::uint64_t> older_data_origin = {};
  Settings settings = {};  // see RunState
  Metadata notes = {};     // see RunState
  bool shuffle = true;
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;
  OnError on_error = OnError::fail;
  std::filesystem::path output = {};            // folder of checkpoints; empty: none are written
  int keep = 1;                                 // checkpoints
  std::optional<std::int64_t> save_every = {};  // steps, counted over the run: between epochs' ends, too
  std::string compression = {};                 // see RunState
  std::int64_t bucket_bytes = 25 << 20;         // of gradients that travel as one piece
  // Steps between comparisons of what the ranks hold, which come before each checkpoint and at the end, too; 0: none.
  // Only where the ranks stay equal by themselves: all sum gradients, with the same kernels, and the strategy neither
  // realigns weights nor shows others. See training/ranks/verify_ranks.h.
  std::int64_t verify_every = 500;
  // With a strategy of local scope: for how long ranks make steps before they add up what these tell, and the observer
  // hears of them; 0: behind each step. See TailSums.
  double report_seconds = 1;
  // The number of this rank in messages. Empty: its place among the ranks that train.
  std::optional<int> number_of_rank = {};
  bool watch = false;           // end with the op that makes the first NaN or infinite number
  bool strict = false;          // no op runs on the host: see CompileOptions
  Profile* profile = nullptr;   // an event per instruction; slows the run down
  Tuner* tuner = nullptr;       // of kernels: see ProgramOptions
  bool parts_may_move = false;  // regroup() may be called with TakenParts
  // Whether a run that goes on with another bucket_bytes may round otherwise.
  bool buckets_change_bits = true;
  // This rank does not begin with the others: it makes its programs, and takes weights, state and place from the others, in
  // the regroup() in which it takes the place of a lost rank.
  bool is_spare = false;
};

// What a rank computes of each step after ranks were lost: of as many parts as there were ranks at the start these,
// which it adds up as those ranks would have done. So the run ends with the same bits.
struct TakenParts {
  std::int64_t parts = 1;
  Slice own = {0, 1};
};

// Is called on every rank with figures over all ranks; only one of them needs to show them. If StrategyParts::dealer deals out the
// data, the figures of a step are this rank's own. What an observer throws on any rank ends all ranks with that error, after the other
// observers have got the same record. It makes no call of all ranks.
class TrainingObserver {
 public:
  virtual ~TrainingObserver();
  // The weights may be on their way from one step to the next; in epoch() they are whole.
  virtual void step(const StepRecord& /*record*/, std::int64_t /*steps_in_epoch*/) {}
  virtual void epoch(const EpochRecord& /*record*/) {}
};

struct TrainingResult {
  std::int64_t steps = 0;      // updates in all, earlier runs included
  std::int64_t steps_now = 0;  // of this run
  std::optional<EpochRecord> last_epoch;
  double images_per_second = 0;  // median over the last RecentValues::most steps
  double stall_share = 0;        // of the time, spent waiting for data
  int signal = 0;                // that ended the run; 0 where it came to its end
  // Samples that could not be read (OnError::skip).
  Skipped skipped = {};             // of the training data: replaced by others
  Skipped skipped_validation = {};  // of the validation data: left out
};

}  // namespace plexaura
