#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/device/collective.h"
#include "training/checkpoint.h"
#include "training/data/dataset.h"
#include "training/data/loader.h"
#include "training/json_log.h"
#include "training/programs.h"
#include "training/schedule.h"

namespace plexaura {

// What a run is made of. Everything outlives the Trainer. All ranks bring equal parts but for `strategy`,
// `collective` and the observer.
struct TrainerParts {
  ModelBuilder model;
  ParameterStore& store;
  Backend& backend;
  Collective& collective;
  Strategy* strategy = nullptr;  // null where the program runs alone
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> validation;
};

struct TrainerOptions {
  std::int64_t batch_size = 1;  // samples of a step over all ranks
  std::int64_t micro_batches = 1;
  std::int64_t epochs = 1;
  std::optional<std::int64_t> steps = {};  // stop after so many updates in all
  Schedule schedule{Schedule::Options{}};
  std::int64_t seed = 0;
  // Hash of what must be the same when a run goes on: which samples are held out, what classes mean.
  std::uint64_t data_origin = 0;
  bool shuffle = true;
  std::int64_t workers = 1;
  std::int64_t prefetch = 2;
  OnError on_error = OnError::fail;
  // Where ranks run on processors of several kinds, the rounding of their updates may differ: after every so
  // many steps all take the weights and buffers of rank 0. 0: the kinds are equal, and so are weights.
  std::int64_t rebroadcast_every = 0;
  std::filesystem::path output = {};  // folder of checkpoints; empty: none are written
  int keep = 1;                       // checkpoints
  ProgramOptions programs = {};
};

// Called on every rank with figures over all ranks; only one of them needs to show them.
class TrainingObserver {
 public:
  virtual ~TrainingObserver();
  virtual void step(const StepRecord& record, std::int64_t steps_in_epoch) = 0;
  virtual void epoch(const EpochRecord& record) = 0;
};

struct TrainingResult {
  std::int64_t steps = 0;      // updates in all, earlier runs included
  std::int64_t steps_now = 0;  // of this run
  std::optional<EpochRecord> last_epoch;
  double images_per_second = 0;      // median over the steps
  double stall_share = 0;            // of the time, spent waiting for data
  int signal = 0;                    // that ended the run; 0 where it came to its end
  std::vector<std::string> skipped;  // samples that could not be read
};

// Trains a model: epochs of steps, validation with a program of its own after each epoch, a checkpoint after
// each epoch and when a signal ends the run. A loss that is not finite ends it with a UserError. Whatever
// fails on one rank ends all of them after the same step with the same error. A resumed run ends bitwise
// equal to one that was never stopped.
class Trainer {
 public:
  // Compiles every program and places the store. All ranks construct together.
  Trainer(TrainerParts parts, TrainerOptions options);

  // What must be equal on all ranks before data moves: the seed, hashes of the plan, the weights and the
  // solver's state, the next step; and the choice of kernels, unless processors are of several kinds.
  std::map<std::string, std::string> facts() const;
  const TrainingPrograms& programs() const { return *programs_; }

  // Goes on from the newest checkpoint in options.output; false where there is none. Throws UserError where
  // the run that wrote it had another precision, solver or seed, another origin of its data or, within an
  // epoch, another number of samples or other batches.
  bool resume();
  TrainingResult run(TrainingObserver& observer);

 private:
  bool train_step(Loader& loader, TrainingObserver& observer);
  StepMetrics agreed_metrics();
  void rebroadcast_weights();
  void check_finite(double loss, const std::string& name);
  Step next_step(Loader& loader) const;
  std::optional<Evaluation> validate();
  Evaluation evaluate_share();
  void finish_epoch(TrainingObserver& observer, double seconds);
  void save();
  bool done() const;

  TrainerParts parts_;
  TrainerOptions options_;
  BatchPlan train_plan_;
  BatchPlan validation_plan_;
  std::unique_ptr<TrainingPrograms> programs_;
  RunState state_;
  TrainingResult result_;
  std::vector<double> rates_;  // images per second of each step
  int noted_signal_ = 0;
  bool saved_ = false;  // as it stands
};

}  // namespace plexaura
