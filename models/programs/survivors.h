#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/params/weights_immigration.h"
#include "core/ranks/rank_lost.h"
#include "distributed/communicator.h"
#include "models/programs/report.h"
#include "models/programs/run_config.h"
#include "training/trainer.h"

namespace plexaura {

// Trains although ranks die, where the MPI and distributed.on_loss allow it: those that are left make a communicator and
// a strategy of their own, and go on from the step that was not finished.
class Survivors {
 public:
  // `all` must outlive it. `processor`: the kind of this rank's. `log`: of the rank that speaks, whichever it is.
  Survivors(Communicator& all, const RunOptions& options, std::string processor, std::string log);
  // All of them must outlive the Trainer.
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  // Trainer::run(), again after each loss that is outlived. All ranks together; throws what else ends the run.
  TrainingResult run(Trainer& trainer, RunReport& report);

  // Those that are left.
  Communicator& ranks();

 private:
  struct Group;

  void go_on(Trainer& trainer, RunReport& report);
  std::string note_who_is_left();
  TakenParts taken_parts() const;

  Communicator& all_;
  const RunOptions& options_;
  std::string processor_;
  std::string log_;
  int number_;                    // of this rank, as at the start
  std::vector<int> numbers_;      // of all that were left before
  std::unique_ptr<Group> group_;  // null: all
};

}  // namespace plexaura
