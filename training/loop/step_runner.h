#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/exchange/collective.h"
#include "training/data/step_source.h"
#include "training/programs/programs.h"
#include "training/ranks/tail_sums.h"

namespace plexaura {

// A step that was launched.
struct LaunchedStep {
  StepTicket ticket = {};
  std::int64_t number = 0;  // of its update, from 1
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  std::int64_t steps_in_epoch = 0;
  std::int64_t global_samples = 0;
  bool ends_epoch = false;
  bool is_exchanging = false;  // WeightExchange::is_exchanging after it
  double learning_rate = 0;
  double begin = 0;          // seconds
  double end = 0;            // seconds, when its metrics were read
  StepMetrics metrics = {};  // when they were read
};

// Launches the steps of a run, and reads the metrics of those that all ranks make together. If a rank fails, all leave with an error.
// What it is made of outlives it.
class StepRunner {
 public:
  // `report_seconds`: see TailSums.
  StepRunner(TrainingPrograms& programs, Collective& ranks, bool watch, double report_seconds);

  // Runs the micro-batches of `data`; `inputs` says the rest. With `inputs.failure` there is no data.
  StepTicket launch(const Step& data, StepInputs inputs);

  // Keeps a step that was launched, and whose metrics are to be read later.
  void keep(const LaunchedStep& step) { under_way_ = step; }
  // Reads the step that is kept, if there is one. Returns the steps of which the metrics are now known, until the next call: with local
  // scope all since the last answer, or none yet. `is_last`: of an epoch or of the run, or before a checkpoint. Throws what fails in
  // the strategy's exchange as it is, on the ranks that meet it, and what else fails on all ranks.
  std::span<const LaunchedStep> read(bool is_last);
  const std::optional<LaunchedStep>& under_way() const { return under_way_; }
  // This rank's own failure, of which the others have not heard: the next step is to be launched with it.
  const std::exception_ptr& failure() const { return tails_.failure(); }

 private:
  std::span<const StepMetrics> answers(const LaunchedStep& step, bool is_last);
  void check_tail(const StepMetrics& metrics, std::int64_t global_samples);

  TrainingPrograms& programs_;
  Collective& ranks_;
  bool watch_;
  bool is_local_;  // the trainer adds up the tails
  bool tail_checked_ = false;
  TailSums tails_;
  std::optional<LaunchedStep> under_way_;
  std::vector<LaunchedStep> unanswered_;
  std::vector<LaunchedStep> answered_;
  StepMetrics one_;
  std::vector<std::vector<Feed>> feeds_;
  std::vector<MicroBatchInputs> batches_;
};

}  // namespace plexaura
