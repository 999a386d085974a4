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

// Runs the work of a rank, which trains or serves, and continues after ranks have died if the MPI and
// distributed.on_loss allow that. The remaining ranks make a new communicator and a new strategy, and repeat
// the step that was not finished. Spares replace dead ranks as long as there are any, so that the number of
// ranks that train stays the same. If the serving rank has died, a rank that trained serves from then on.
class Survivors {
 public:
  // `roles` and `strategy` are those at the start of the run, and must outlive this object. `strategy` is
  // null on a spare, and on a rank without a strategy. `processor` is the kind of this rank's processor. If
  // the rank that writes `files` dies, the rank that replaces it continues them.
  Survivors(const Roles& roles, Strategy* strategy, const RunOptions& options, std::string processor,
            RecordFiles files);
  // The Trainer must be destroyed before this object, because it refers to communicators and strategies of
  // this object.
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  // Collective over all ranks. Does this rank's part of the run, and repeats that after each loss that is
  // outlived. Throws all other errors. A training rank calls Trainer::run(), and a serving rank calls
  // Roles::serve(). A spare waits until it replaces a rank; its Trainer has TrainerOptions::is_spare. The
  // result of a spare that replaced no rank contains only the signal that ended the run. `trainer` and
  // `report` are null on a rank that serves from the start. On other ranks `store` and `backend` must be
  // those of the Trainer.
  TrainingResult run(ParameterStore& store, Backend& backend, Trainer* trainer = nullptr,
                     RunReport* report = nullptr);
  // Calls Roles::share_status() on the ranks that are left, and returns its result.
  int share_status(int mine) const;

  // Returns true if this rank trains. Returns false on a spare until it has replaced another rank, and on a
  // rank that serves.
  bool trains() const { return trains_; }
  // Returns the communicator of the ranks that train. Called only on ranks that train.
  Communicator& ranks() const { return roles().training(); }
  // Returns the strategy of the current group of ranks.
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
  void notify_spares(int signal, std::string_view what);
  int hear(double deadline_seconds, std::string_view what);
  void regroup();
  void proceed(Trainer* trainer, RunReport* report);
  std::string note_who_is_left();
  TakenParts taken_parts() const;

  const Roles& roles_at_start_;
  Strategy* strategy_at_start_;
  int trainers_;  // number of ranks that train, as long as enough ranks live
  const RunOptions& options_;
  std::string processor_;
  RecordFiles files_;
  bool trains_;
  std::vector<int> numbers_;      // the ranks of the former group, by their numbers at the start
  std::unique_ptr<Group> group_;  // the current group; null: no rank has died
  // Former groups, which are kept because the Trainer still refers to them.
  std::vector<std::unique_ptr<Group>> former_;
};

}  // namespace plexaura
