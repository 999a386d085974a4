#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "core/ranks/collective.h"
#include "training/data/step_source.h"
#include "training/programs.h"

namespace plexaura {

// Launches the steps of a run and reads what they answered, together with all ranks. Where any rank fails, all
// leave with an error. What it is made of outlives it.
class StepRunner {
 public:
  // `strategy`: null for one rank.
  StepRunner(TrainingPrograms& programs, Collective& ranks, Strategy* strategy, bool watch)
      : programs_(programs), ranks_(ranks), strategy_(strategy), watch_(watch) {}

  // Runs the micro-batches of `data`; `inputs` says the rest. With `inputs.failure` there is no data.
  StepTicket launch(const Step& data, StepInputs inputs);

  // What a step answered, one of the last two, whose update has this number and which had so many samples. What
  // fails in the strategy's exchange is thrown as it is, on the ranks that meet it; what else fails, on all; or, where
  // the strategy deals out the data, on this one.
  StepMetrics read(const StepTicket& ticket, std::int64_t step, std::int64_t global_samples);

  // Of a step in which the strategy ended the run: throws what failed in it.
  void check_stopped(const StepTicket& ticket, std::int64_t step);

 private:
  bool is_local() const;
  bool is_dealt() const;
  StepMetrics sum_tail(const StepMetrics& mine, std::int64_t step);
  void check_tail(const StepMetrics& metrics, std::int64_t global_samples);

  TrainingPrograms& programs_;
  Collective& ranks_;
  Strategy* strategy_;
  bool watch_;
  bool tail_checked_ = false;
  std::vector<std::vector<Feed>> feeds_;
  std::vector<MicroBatchInputs> batches_;
};

}  // namespace plexaura
