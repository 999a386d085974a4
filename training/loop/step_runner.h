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

// A step that was launched, and its metrics once they were read.
struct LaunchedStep {
  StepTicket ticket = {};
  std::int64_t number = 0;  // number of the update in the run, from 1
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  std::int64_t steps_in_epoch = 0;
  std::int64_t global_samples = 0;
  bool ends_epoch = false;
  bool is_exchanging = false;  // WeightExchange::is_exchanging() after the step
  double learning_rate = 0;
  double begin = 0;          // seconds of the clock seconds_now(), at the start of the step
  double end = 0;            // seconds of the same clock, when the metrics were read
  StepMetrics metrics = {};  // set when the metrics were read
};

// Prepares the inputs of steps, and reads the metrics of launched steps that all ranks make together. If a rank
// fails, all ranks throw an error, see read(). The constructor's arguments must outlive the runner.
class StepRunner {
 public:
  // For `report_seconds` see TailSums.
  StepRunner(TrainingPrograms& programs, Collective& ranks, bool watch, double report_seconds);

  // Returns `inputs` with the micro-batches of `data`, which remain valid until the next call. If the micro-batches
  // cannot be made into feeds, returns the error in `failure`. The caller passes no micro-batches if it has set
  // `inputs.failure`.
  StepInputs with_batches(const Step& data, StepInputs inputs);

  // Keeps a launched step whose metrics read() will read.
  void keep(const LaunchedStep& step) { under_way_ = step; }
  // Reads the kept step, if there is one. Returns the steps whose metrics are now known. The span is valid
  // until the next call. With local scope, metrics are summed over ranks only from time to time. Then the
  // function returns all steps since the last sum, or none. `is_last` is true for the last step of an epoch
  // or of the run, and before a checkpoint. An error in the strategy's exchange is thrown unchanged, on the
  // ranks where it occurs; any other error is thrown on all ranks.
  std::span<const LaunchedStep> read(bool is_last);
  const std::optional<LaunchedStep>& under_way() const { return under_way_; }
  // Returns this rank's own failure, which the other ranks do not know yet. The next step must be launched with it.
  const std::exception_ptr& failure() const { return tails_.failure(); }

 private:
  std::span<const StepMetrics> answers(const LaunchedStep& step, bool is_last);
  void check_tail(const StepMetrics& metrics, std::int64_t global_samples);

  TrainingPrograms& programs_;
  Collective& ranks_;
  bool watch_;
  bool is_local_;  // true if the strategy has local scope, so that `tails_` sums the metrics
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
