#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/loop/trainer_options.h"

namespace plexaura {

struct Run;

// Trains a model: epochs of steps, validation with a program of its own after each epoch, a checkpoint after
// each epoch and when a signal ends the run. Where a device computes while the host goes on, the next step is
// launched before a step's metrics are read, on all ranks if one has such a device: a failure or a bad loss then
// ends the run one step later, a signal up to two, and before anything is saved. A loss that is not finite ends
// it with a UserError, and so do weights that are not where a checkpoint is due, whether one is written or not.
// Whatever fails on one rank ends all of them after the same step with the same error. A resumed run ends
// bitwise equal to one that was never stopped. With a strategy of local scope all that is about report_seconds late, and up to ten times
// as late while it exchanges. If StrategyParts::dealer deals out the data, each rank makes its steps without the others, and they meet at
// the end of an epoch, or sooner if one fails or is to stop; no two runs are equal.
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
  // Trains to the end, once: UserError for a second call. Each of several observers gets every record, in this order.
  TrainingResult run();
  TrainingResult run(TrainingObserver& observer);
  TrainingResult run(std::vector<std::reference_wrapper<TrainingObserver>> observers);
  // Ends run() early, for an observer that has seen enough, on one rank or on several. All ranks end together, with a
  // checkpoint: after the epoch whose figures the observer has got, or after the next step (two steps where a device
  // computes while the host goes on).
  void end_early();
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
  std::unique_ptr<Run> run_;
  bool has_other_kernels_ = false;
  bool has_other_buckets_ = false;
  std::atomic<bool> ran_ = false;  // since the last regroup()
};

}  // namespace plexaura
