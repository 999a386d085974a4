#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/loop/trainer_options.h"

namespace plexaura {

struct Run;

// Trains a model. A run consists of epochs of steps. After each epoch it validates, with a program of its own, and saves
// a checkpoint; it also saves one when a signal ends the run.
//
// If a device computes asynchronously on at least one rank, all ranks launch the next step before they read a step's
// metrics. A failure or a bad loss then ends the run one step later, and a signal up to two steps later, but always
// before anything is saved. A loss that is not finite ends the run with a UserError. So do weights that are not finite
// when a checkpoint is due, even if none is written. For TrainerOptions::ends_on_divergence neither is an error. A
// failure on one rank ends the run on all ranks, after the same step and with the same error. A resumed run with the
// same kernels ends bitwise equal to one that was never stopped.
//
// With a strategy of local scope the run ends about report_seconds later than that, and up to ten times as late while the
// strategy exchanges. If StrategyParts::dealer deals out the data, each rank makes its steps without the other ranks.
// They meet at the next checkpoint or the end of the epoch, or sooner if one of them fails or is to stop. No two
// such runs are equal.
class Trainer {
 public:
  // Compiles all programs and places the store. All ranks construct their Trainers together, but a spare does so by
  // itself, and compiles in regroup(). While the Trainer lives, no other run may write into options.output. Throws
  // UserError if another run does, if parts are missing, and if validation and training data have different fields.
  Trainer(TrainerParts parts, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  // Returns what must be equal on all ranks before they exchange data: the seed, the next step, a hash of the plan, and
  // the compression if it was chosen. Also the choice of kernels, unless the strategy realigns weights. Also hashes of
  // the weights and, after the first step, of the optimizer's state, unless StrategyHistory::own_state is set.
  std::map<std::string, std::string> facts() const;
  const TrainingPrograms& programs() const;

  // Loads the newest checkpoint in options.output, so that run() continues from it. Returns false if there is none. Throws
  // UserError if the run that wrote it had another precision, optimizer or seed, other settings, another origin of its
  // data or more epochs than options.epochs; also if one of them has read streams and the other has not, or another
  // number of streams. If the checkpoint was written within an epoch, throws for another number of samples, other
  // batches or another order, too. Uses the kernels of that run if options.tuner was given
  // kernel_times_of_newest() before. Called before run().
  bool resume();
  // True if the resumed run used other kernels than this one, so that rounding may differ. The reason may be
  // another processor, build, number of ranks or batch size, or other measured times of kernels.
  bool has_other_kernels() const { return has_other_kernels_; }
  // True if the kernels differ and the resumed run also had another options.bucket_bytes, which may be the reason.
  bool has_other_buckets() const { return has_other_buckets_; }
  // Runs the first step of an epoch on samples that are all zeros. The step is not counted. With a
  // DescribedBackend it shows the work that a step enqueues.
  void step_on_zeros();
  // Trains to the end of the run. Throws UserError if it is called twice, except after a regroup(), and if options.output
  // has checkpoints of an earlier run, which was not resumed and may not be replaced. Each of several observers gets every
  // record until one of them throws, in the order of the list. The list takes references: run({first, second}).
  TrainingResult run();
  TrainingResult run(TrainingObserver& observer);
  TrainingResult run(std::vector<std::reference_wrapper<TrainingObserver>> observers);
  TrainingResult run(std::initializer_list<TrainingObserver*> observers) = delete;
  // Makes run() end early; an observer may call it, on one rank or on several. All ranks end together and save a
  // checkpoint: after the epoch whose record the observer has got, or after the next step (up to two steps later if a
  // device computes asynchronously).
  void end_early();
  // Continues after run() has thrown because ranks were lost: the remaining ranks divide the data again, from
  // the step that was not finished, with a new communicator and strategy. After this call, run() continues.
  // The remaining ranks call it together, and compare facts() afterwards. If it throws, only another
  // regroup() is possible. The old communicator and strategy must live until this has returned or thrown,
  // because it ends the exchanges that are under way in them with errors; they are not used afterwards. The
  // new rank 0 takes over the folder of checkpoints, even if the lost rank 0 is stopped instead of dead.
  //
  // If the strategy agrees before it updates (see StrategyParts), weights, optimizer state and place are
  // those after the last finished step; otherwise some ranks may have made a part of an update. If some ranks
  // have finished one step more than others, the others take all of this from one of these ranks, and
  // their observers get no record of that step. Spares, which join here, take it in the same way. With local
  // scope each rank keeps its own weights and state, and the strategy's KeptState::state(); the part of a
  // step that it has not done is left out if others have finished that step.
  //
  // If StrategyParts::dealer deals out the data, a step keeps its number of parts, each rank keeps its own
  // optimizer state, and ranks that are within a deal begin it again: the next dealer knows which parts are
  // left. Throws UserError if StrategyParts::courier has brought the data, because then only rank 0 may have
  // all data, and for a stream, of which the lost ranks have used samples.
  //
  // With `taken` the ranks do not divide the data again, but take over the parts of lost ranks. The strategy
  // must then sum over all parts; see WeightsImmigration::shard(). Only allowed if options.parts_may_move is
  // set.
  void regroup(Collective& collective, Strategy* strategy, std::optional<TakenParts> taken = {});
  // Called instead of regroup(), by one rank alone: this rank stops training and releases its strategy, its programs and
  // the folder of checkpoints.
  void step_aside();
  // Evaluates the validation data with the present weights, or with their averages (OptimizerSpec::ema). All
  // ranks call it together. Throws UserError if there is no validation data, if none of it can be read, and if
  // all of its labels are ignored or have the weight 0.
  Validation validate();

 private:
  std::unique_ptr<Run> run_;
  bool has_other_kernels_ = false;
  bool has_other_buckets_ = false;
  bool continues_run_ = false;     // true after resume() or regroup()
  std::atomic<bool> ran_ = false;  // true once run() was called since the last regroup()
};

}  // namespace plexaura
