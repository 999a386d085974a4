#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/events.h"
#include "core/exchange/collective.h"
#include "training/checkpoints/checkpoint.h"
#include "training/data/sampler.h"
#include "training/files/records.h"
#include "training/loop/recent_values.h"
#include "training/optimizers/schedule.h"
#include "training/programs/programs.h"
#include "training/ranks/skipped.h"

namespace plexaura {

class FolderLock;
class Loader;
class StepRunner;
class StepSource;
struct LoaderOptions;
struct Step;

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

// Called on every rank with figures over all ranks (those of a step are this rank's own where StrategyParts::dealer deals
// out the data); only one of them needs to show them. What it throws on any rank ends all of them with that error. It
// makes no call of all ranks.
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

// Trains a model: epochs of steps, validation with a program of its own after each epoch, a checkpoint after
// each epoch and when a signal ends the run. Where a device computes while the host goes on, the next step is
// launched before a step's metrics are read, on all ranks if one has such a device: a failure or a bad loss then
// ends the run one step later, a signal up to two, and before anything is saved. A loss that is not finite ends
// it with a UserError, and so do weights that are not where a checkpoint is due, whether one is written or not.
// Whatever fails on one rank ends all of them after the same step with the same error. A resumed run ends
// bitwise equal to one that was never stopped. With a strategy of local scope all that is about report_seconds late, and ten times as long where it exchanges for so long. Where StrategyParts::dealer deals out the data, each rank makes its steps
// without the others, and they meet at the end of an epoch, or sooner where one fails or is to stop; no two runs are
// equal.
class Trainer {
 public:
  // Compiles every program and places the store. All ranks construct together, but a spare by itself. As long as the trainer lives
  // nobody else may write into options.output. Throws UserError where another run does, for parts that are
  // missing, and for validation data of other fields than the training data's.
  Trainer(TrainerParts parts, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  // What must be equal on all ranks before data moves: the seed, hashes of the plan, the weights and the
  // optimizer's state, the next step, the compression if it was chosen; and the choice of kernels, unless the strategy realigns
  // weights.
  std::map<std::string, std::string> facts() const;
  const TrainingPrograms& programs() const;

  // Goes on from the newest checkpoint in options.output; false where there is none. Throws UserError where
  // the run that wrote it had another precision, optimizer or seed, other settings, another origin of its data,
  // more epochs than options.epochs or, within an epoch, another number of samples, other batches or another
  // order. It takes the kernels of that run where options.tuner was given kernel_times_of_newest() before.
  bool resume();
  // Whether the run that was resumed took other kernels than this one, so that rounding may differ: another
  // processor, build, number of ranks or batch, or other times of kernels.
  bool has_other_kernels() const { return has_other_kernels_; }
  // Whether it also had another options.bucket_bytes, which may be the reason.
  bool has_other_buckets() const { return has_other_buckets_; }
  // Runs the first step of an epoch on samples that are all zeros, and counts it nowhere: for a DescribedBackend, to see
  // what it enqueues.
  void step_on_zeros();
  // Trains to the end, once: UserError for a second call.
  TrainingResult run(TrainingObserver& observer);
  TrainingResult run();
  // Ends run() early, for an observer that has seen enough, on one rank or on several. All ranks end together, with a
  // checkpoint: behind the epoch whose figures the observer has got, or behind the next step (two steps where a device
  // computes while the host goes on).
  void end_early() { asked_to_end_ = true; }
  // After a run that ended with the loss of ranks: those that are left share out the data anew, from the step
  // that was not finished, with a communicator and a strategy of their own, and run() goes on. Weights, state
  // and place are those that the last finished step has left where the strategy agrees before it updates (see
  // StrategyParts); others may have updated in part. Where some ranks have finished one step more than others, these
  // take all that from the lowest of those, and their observers miss that step. So do spares, which come in here. With
  // local scope each rank keeps its own weights and state, and those of KeptState::state(); what it has not done of a step
  // that others have finished is left out. The
  // old communicator and strategy
  // live until this has returned or thrown, for the events of exchanges under way are failed in it, and are not
  // used any more then. Of a lost rank 0 that is stopped instead of dead, the new one takes the
  // folder of checkpoints. All that are left call it together, and compare facts() afterwards. Where it throws,
  // the Trainer can only regroup again. Where StrategyParts::dealer deals out the data, a step keeps its parts, and ranks
  // that are within a deal begin it again: the next dealer knows what is left of it. Each rank keeps its own state of the
  // optimizer then. UserError where StrategyParts::courier has brought the data, for rank 0 alone may have all.
  // `taken`: instead of sharing out the data anew. The strategy has to sum over all parts then, see
  // WeightsImmigration::shard(). Only if options.parts_may_move.
  void regroup(Collective& collective, Strategy* strategy, std::optional<TakenParts> taken = {});
  // In the place of regroup(), by itself: this rank trains no more, and lets go of strategy, programs and folder.
  void step_aside();
  // The validation data under the weights as they are. All ranks together. UserError where there is none, or
  // none of it can be read.
  Validation validate();

 private:
  Collective& ranks() const { return *parts_.collective; }
  int number() const { return options_.number_of_rank.value_or(ranks().rank()); }
  void share_out();
  void make_programs();
  void drop_programs();
  void take_strategy(Strategy* strategy);
  // So that weights and the optimizer's state are this rank's own.
  bool trains_for_itself() const { return exchange_.scope == GradientScope::local; }
  // So that each rank makes its steps without the others.
  bool is_dealt() const { return exchange_.dealer != nullptr; }
  void stand_together();
  void begin_strategy();
  void give_strategy_state();
  void keep_own_state(const KeptState* former);
  void settle_strategy();
  void require_programs() const;
  LoaderOptions reading() const;
  LoaderOptions reading_on() const;
  // A step that was launched and whose metrics were not read yet.
  struct StepUnderWay {
    StepTicket ticket = {};
    std::int64_t number = 0;  // of its update, from 1
    std::int64_t epoch = 0;
    std::int64_t step_in_epoch = 0;
    bool is_exchanging = false;  // WeightExchange::is_exchanging after it
    double begin = 0;            // seconds
    double end = 0;              // likewise, when it was read
  };

  bool any_rank_runs_ahead();
  void train_step(StepSource& steps, TrainingObserver& observer);
  StepUnderWay launch_step(StepSource& steps);
  StepUnderWay launch(const Step& data, std::exception_ptr failure, double begin);
  double learning_rate(std::int64_t epoch, std::int64_t step_in_epoch) const;
  void advance();
  void go_to(std::int64_t step_in_epoch);
  void end_epoch_where_due();
  // Where the data is dealt out: the steps of this rank until nothing is left; and the meeting of all behind them.
  void train_dealt(Loader& loader, TrainingObserver& observer);
  DealtSteps steps_of_deal() const;
  std::int64_t train_drawn(Loader& loader, TrainingObserver& observer, const DealtSteps& steps);
  std::optional<std::int64_t> draw_ahead(Loader& loader, const DealtSteps& steps);
  std::exception_ptr train_alone(Loader& loader, TrainingObserver& observer, double begin);
  void meet();
  double rate_of_all_ranks();
  void note_step_under_way(TrainingObserver& observer);
  void note_step(const StepUnderWay& step, const StepMetrics& metrics, TrainingObserver& observer);
  bool ranks_stay_equal();
  void verify();
  void check_reported();
  void check_loss(double loss, const std::string& name, bool is_of_all_ranks);
  Step next_step(StepSource& steps) const;
  std::optional<ExchangeRecord> take_exchange_record() const;
  struct EpochClock {
    double begin = seconds_now();
    double waited_before = seconds_waited();
  };
  void finish_epoch(TrainingObserver& observer, const EpochClock& clock);
  std::optional<RankWaits> take_waits(double seconds, double waited_seconds);
  void lock_output();
  void save();
  void write_checkpoint();
  void save_now(TrainingObserver& observer);
  bool is_save_due() const;
  bool is_to_be_saved(std::int64_t step) const;
  bool done() const;
  bool any_rank_asked_to_end();
  bool is_to_stop() const { return noted_signal_ != 0 || asked_to_end_; }

  SingleProcess alone_;
  ParameterStore store_;
  TrainerParts parts_;      // with that store
  StrategyParts exchange_;  // of that strategy
  TrainerOptions options_;
  std::optional<TakenParts> taken_;
  BatchPlan train_plan_;
  BatchPlan validation_plan_;
  std::unique_ptr<FolderLock> output_lock_;  // of rank 0
  std::string writer_;                       // the process of rank 0
  std::set<std::string> processes_;          // of all ranks there ever were
  std::unique_ptr<TrainingPrograms> programs_;
  std::unique_ptr<StepRunner> runner_;
  RunState state_;  // behind the last step that was launched; sums are of the steps whose metrics were read
  std::int64_t first_step_ = 0;  // updates done before this run
  std::optional<StepUnderWay> under_way_;
  std::vector<StepUnderWay> unnoted_;            // read, and their tails not added up yet
  bool runs_ahead_ = false;                      // metrics are read one step late
  bool verifies_ = false;                        // ranks compare what they hold
  bool epoch_ended_ = false;                     // and was not validated yet
  std::optional<std::int64_t> deal_begin_ = {};  // its step in the epoch; none: this rank is in no deal
  bool is_to_meet_ = false;                      // nothing more is dealt
  std::exception_ptr failure_;                   // of this rank, of which the others hear where they meet
  bool stopped_ = false;                         // all ranks leave: one was asked to stop
  TrainingResult result_;
  RecentValues rates_;   // images per second of each step
  double noted_at_ = 0;  // seconds: when the last of them was noted
  int noted_signal_ = 0;
  bool asked_to_end_ = false;
  std::exception_ptr report_failure_;  // of the observer of the last step
  bool saved_ = false;                 // as it stands
  bool has_other_kernels_ = false;
  bool has_other_buckets_ = false;
  std::atomic<bool> ran_ = false;
  bool has_begun_ = false;  // and the strategy was given its state
  // With local scope, where ranks were lost: what the former strategy had, until the next one has it.
  std::optional<std::vector<StrategyState>> own_state_;
};

}  // namespace plexaura
