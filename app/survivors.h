#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/run_config.h"
#include "app/report/report.h"
#include "core/exchange/rank_lost.h"
#include "core/exchange/strategy.h"
#include "distributed/communicator/communicator.h"
#include "distributed/communicator/roles.h"
#include "training/loop/trainer.h"

namespace plexaura {

// Trains, or serves, although ranks die, where the MPI and distributed.on_loss allow it: those that are left make a
// communicator and a strategy of their own, and go on from the step that was not finished. As many train as at the start, as
// long as there are spares. Where the one that serves has died, a rank that has trained serves from then on.
class Survivors {
 public:
  // `roles` and `strategy` (null on a spare, and where this rank has none) are those at the start, and outlive this.
  // `processor`: the kind of this rank's. `log`: of the rank that speaks, whichever it is.
  Survivors(const Roles& roles, Strategy* strategy, const RunOptions& options, std::string processor,
            std::string log);
  // All of them must outlive the Trainer.
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  // All ranks call it together. Makes this rank's part of the run, again after each loss that is outlived, and throws
  // what else ends the run. A rank that trains calls Trainer::run(), and one that serves Roles::serve(). A spare, whose
  // Trainer is one of TrainerOptions::is_spare, waits first; if it was never needed, its result contains only the signal
  // that ended the run. `trainer` and `report`: null on a rank that serves from the start. `store` and `backend`: the
  // Trainer's.
  TrainingResult run(ParameterStore& store, Backend& backend, Trainer* trainer = nullptr,
                     RunReport* report = nullptr);
  // Roles::share_status(), of the ranks that are left.
  int share_status(int mine) const;

  // False on a spare, until it has taken the place of another rank, and on a rank that serves.
  bool trains() const { return trains_; }
  // Those that are left and train. Only where this rank trains.
  Communicator& ranks() const { return roles().training(); }
  // The one that was used last.
  Strategy& strategy() const;

 private:
  struct Group;

  const Roles& roles() const;
  bool has_spares() const;
  void await_the_beginning();
  bool is_outlived(const RankLost& loss) const;
  bool all_have_ended(bool has_ended);
  double patience() const;
  int stand_by();
  void tell_spares(int signal, std::string_view what);
  int hear(double deadline_seconds, std::string_view what);
  void regroup();
  void go_on(Trainer* trainer, RunReport* report);
  std::string note_who_is_left();
  TakenParts taken_parts() const;

  const Roles& roles_at_start_;
  Strategy* strategy_at_start_;
  int trainers_;  // as long as there are so many
  const RunOptions& options_;
  std::string processor_;
  std::string log_;
  bool trains_;
  std::vector<int> numbers_;                    // of all that were left before, as at the start
  std::unique_ptr<Group> group_;                // null: all
  std::vector<std::unique_ptr<Group>> former_;  // which the Trainer has not let go of yet
};

}  // namespace plexaura
