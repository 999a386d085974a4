#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "training/data/loader.h"
#include "training/data/step_source.h"
#include "training/loop/checkpoint_folder.h"
#include "training/loop/observers.h"
#include "training/loop/protocol.h"
#include "training/loop/recent_values.h"
#include "training/loop/step_runner.h"
#include "training/loop/trainer_options.h"

namespace plexaura {

// How the ranks share out the data. regroup() makes it anew.
struct Division {
  const Protocol* protocol = nullptr;
  std::optional<TakenParts> taken = {};
  BatchPlan train = {};
  BatchPlan validation = {};
};

// Where a run stands. If a rank is lost, the others go on from here: a loop looks at it before each step.
struct Progress {
  RunState state =
      {};  // after the last step that was launched; the sums are of steps whose metrics were read
  std::int64_t first_step = 0;                  // updates done before this run
  bool epoch_ended = false;                     // and was not validated yet
  std::optional<std::int64_t> deal_begin = {};  // its step in the epoch; none: this rank is in no deal
  bool is_to_meet = false;                      // nothing more is dealt
  std::exception_ptr failure = {};  // of this rank in a deal: the others hear of it when they meet
  bool stopped = false;             // all ranks leave: one was asked to stop
  bool saved = false;               // as it stands

  void go_to(std::int64_t step_in_epoch);
  void end_epoch();
};

struct StopRequest {
  int signal = 0;
  bool asked = false;  // by end_early()

  bool is_made() const { return signal != 0 || asked; }
  void look_for_signal();
};

// Times of a run, in seconds.
struct RunClock {
  double begin = seconds_now();        // of the last call of Trainer::run()
  double epoch_begin = seconds_now();  // of what that call has made of the epoch
  double waited_before = seconds_waited();
  double noted_at = 0;      // when the last step was noted
  RecentValues rates = {};  // images per second of each step

  void begin_epoch();
};

// What a strategy gets from the one before it, when ranks were lost.
struct StrategyHistory {
  bool has_begun = false;  // and was given its state
  // With local scope, what the former strategy had, until the next one has it.
  std::optional<std::vector<StrategyState>> own_state = {};
};

// A run: what it is made of, where it stands, and what it has measured. The loops share it, and keep nothing of their own from one step
// to the next.
struct Run {
  Run(const TrainerParts& given, TrainerOptions of_run);

  Collective& ranks() const { return *parts.collective; }
  const StrategyInUse& strategy() const { return programs->strategy(); }
  int number() const { return options.number_of_rank.value_or(ranks().rank()); }

  SingleProcess alone;
  ParameterStore store;
  TrainerParts parts;  // with that store
  TrainerOptions options;
  Division division;
  CheckpointFolder folder;
  std::unique_ptr<TrainingPrograms> programs;  // null: for a spare, and after a regroup() that has failed
  std::unique_ptr<StepRunner> runner;
  Progress progress;
  StrategyHistory history;
  StopRequest stop;
  Observers observers;
  TrainingResult result;
  bool runs_ahead = false;  // metrics are read one step late
  bool verifies = false;    // ranks compare what they hold
  RunClock clock;
};

// Made anew when ranks were lost. All ranks together.
void share_out(Run& run, const StrategyInUse& strategy);
void make_programs(Run& run, const StrategyInUse& strategy);
void drop_programs(Run& run);
// UserError for a run without programs.
void require_programs(const Run& run);

// How the data of validation, and of training from where the run stands, is read.
LoaderOptions reading(const Run& run);
LoaderOptions reading_on(const Run& run);

}  // namespace plexaura
