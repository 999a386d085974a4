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
#include "training/ranks/catch_up.h"

namespace plexaura {

// The division of the data among the ranks. regroup() makes a new division.
struct Division {
  const Protocol* protocol = nullptr;
  std::optional<TakenParts> taken = {};
  BatchPlan train = {};
  BatchPlan validation = {};
};

// The progress of a run. A loop reads this before each step. If a rank is lost, the others continue from
// here.
struct Progress {
  // The place after the last launched step. The loss sums in it cover only steps whose metrics were read.
  RunPlace place = {};
  // The number, in the epoch, of the first step of this rank's deal; empty outside a deal.
  std::optional<std::int64_t> deal_begin = {};
  // Failure of this rank in a deal; the other ranks learn of it when they meet.
  std::exception_ptr failure = {};
  bool stopped = false;        // true: the run ends early on all ranks, for example on a request or a signal
  bool is_weightless = false;  // true: all labels of a step of this epoch were ignored
  // Name of the goal by which place.best is found: see name_of(). Empty if neither this run nor the one that it
  // continues has a goal.
  std::string goal_name = {};
  std::vector<std::int64_t> streamed = {};  // see RunState

  void go_to(std::int64_t step_in_epoch);
  void end_epoch();
};

struct StopRequest {
  int signal = 0;
  bool asked = false;  // true after end_early()

  bool is_made() const { return signal != 0 || asked; }
  void look_for_signal();
};

// Times of a run, in seconds, and its latest rates.
struct RunClock {
  double begin = seconds_now();  // start of the last call of Trainer::run()
  // When the last call of Trainer::run() began its part of the epoch.
  double epoch_begin = seconds_now();
  double waited_before = seconds_waited();  // seconds that this rank had waited at epoch_begin
  double noted_at = 0;                      // when the last step was noted
  RecentValues rates = {};                  // images per second of the last steps

  void begin_epoch();
};

// The state that a strategy gets from a checkpoint, or from the former strategy after ranks were lost.
struct StrategyHistory {
  SavedStrategy saved = {};  // the strategy's state in a checkpoint, until the strategy takes it
  int saved_ranks = 0;     // number of ranks when the last checkpoint was saved, also that of the resumed run
  bool has_begun = false;  // true if the strategy has begun and has its state
  // The former strategy's state, until the next strategy takes it. Used for strategies with local scope.
  std::optional<std::vector<StrategyState>> own_state = {};
};

// The whole state of a run: its parts, its progress and its measurements. The loops share it, and keep no state of
// their own from one step to the next.
struct Run {
  Run(const TrainerParts& given, TrainerOptions of_run);

  Collective& ranks() const { return *parts.collective; }
  const StrategyInUse& strategy() const { return programs->strategy(); }
  int number() const { return options.number_of_rank.value_or(ranks().rank()); }

  SingleProcess alone;
  ParameterStore store;
  TrainerParts parts;  // the parts that the caller passed; its store is `store`
  TrainerOptions options;
  Division division;
  CheckpointFolder folder;
  std::unique_ptr<TrainingPrograms> programs;  // null for a spare, after step_aside() and a failed regroup()
  std::unique_ptr<StepRunner> runner;
  Progress progress;
  StrategyHistory history;
  StopRequest stop;
  Observers observers;
  TrainingResult result;
  bool runs_ahead = false;  // true: metrics are read one step late
  bool verifies = false;    // true: verify() compares the ranks
  RunClock clock;
};

// Returns the fields of the training samples.
std::vector<Field> fields_of(const TrainerParts& parts);

// Divide the data, and make the programs, at the start and again after ranks were lost; or drop the programs. All
// ranks call the first two together.
void share_out(Run& run, const StrategyInUse& strategy);
void make_programs(Run& run, const StrategyInUse& strategy);
void drop_programs(Run& run);
// Throws UserError if the run has no programs.
void require_programs(const Run& run);

// Returns the validation loss if the name is "loss", and otherwise the metric with this name. Throws UserError if the
// model reports no such metric.
double validation_value(std::string_view name, double loss, std::span<const MetricValue> metrics);

// Returns the state of a checkpoint at the present place, without that of the strategy.
RunState state_of(const Run& run);

// Return how validation data is read, and how training data is read from the run's present place on.
LoaderOptions reading(const Run& run);
LoaderOptions reading_on(const Run& run);

}  // namespace plexaura
