#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "core/exchange/collective.h"
#include "training/data/step_source.h"
#include "training/programs/programs.h"
#include "training/ranks/tail_sums.h"

namespace plexaura {

struct StepToRead {
  std::int64_t step = 0;  // the number of its update
  std::int64_t global_samples = 0;
  bool is_exchanging = false;  // WeightExchange::is_exchanging after it
  bool is_last = false;        // of an epoch or of the run, or before all is saved
};

// Launches the steps of a run and reads what they answered, together with all ranks. Where any rank fails, all
// leave with an error. What it is made of outlives it.
class StepRunner {
 public:
  // `report_seconds`: see TailSums.
  StepRunner(TrainingPrograms& programs, Collective& ranks, const StrategyParts& exchange, bool watch,
             double report_seconds)
      : programs_(programs),
        ranks_(ranks),
        exchange_(exchange),
        watch_(watch),
        tails_(ranks, report_seconds) {}

  // Runs the micro-batches of `data`; `inputs` says the rest. With `inputs.failure` there is no data.
  StepTicket launch(const Step& data, StepInputs inputs);

  // What a step answered, one of the last two; all are read, in their order. With local scope, of all steps since the last
  // answer, or nothing yet. It stays until the next call. What
  // fails in the strategy's exchange is thrown as it is, on the ranks that meet it; what else fails, on all; or, where
  // the strategy deals out the data, on this one.
  std::span<const StepMetrics> read(const StepTicket& ticket, const StepToRead& of);
  // Of this rank, which the others have not heard of: the next step is to be launched with it.
  const std::exception_ptr& failure() const { return tails_.failure(); }

 private:
  std::span<const StepMetrics> of_one(const StepMetrics& metrics);
  void check_tail(const StepMetrics& metrics, std::int64_t global_samples);

  TrainingPrograms& programs_;
  Collective& ranks_;
  StrategyParts exchange_;
  bool watch_;
  bool tail_checked_ = false;
  TailSums tails_;
  StepMetrics one_;
  std::vector<std::vector<Feed>> feeds_;
  std::vector<MicroBatchInputs> batches_;
};

}  // namespace plexaura
