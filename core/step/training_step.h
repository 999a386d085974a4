#pragma once

#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/busy.h"
#include "core/base/export.h"
#include "core/compile/compile.h"
#include "core/device/backend_use.h"
#include "core/exchange/strategy.h"
#include "core/step/late_updates.h"
#include "core/step/step_metrics.h"
#include "core/vm/vm.h"

namespace plexaura {

// A number that is reported with the loss. The model gives a scalar of the store's dtype: the mean or the sum over the
// samples of one micro-batch. It is reported as a mean over all samples; for example, the sum of hits is reported as the
// accuracy.
struct Metric {
  std::string name;
  Node mean = {};
  // The sum over the samples of a micro-batch; exact for counts, whatever the division into micro-batches.
  Node sum = {};
};

// Numbers that are computed in validation only, from sums over all validation samples: a ratio of two sums, for example.
// They do not depend on how the samples are divided into batches and among ranks.
struct ValidationSums {
  Node sums = {};  // sums over the samples of one batch, of any shape and floating dtype
  // Returns names and values. `totals`: the elements of `sums`, row-major, each added up over all batches and ranks.
  // `samples`: the number of samples. Both may be NaN, if there was no validation. Empty: no numbers are reported.
  std::function<std::vector<std::pair<std::string, double>>(std::span<const double> totals, double samples)>
      values = {};
};

// The outputs of a model that training uses.
struct LossOutputs {
  // The mean over the samples of one micro-batch, a scalar of the store's dtype. With `weight` it is a sum instead.
  Node loss;
  // The divisor of the sum `loss`: the number of labels that are not ignored, or the sum of the samples' weights, for
  // example. A scalar of the store's dtype, not negative. Loss, gradients and weight are added up over all micro-batches and
  // ranks of a step, and divided then. So the loss is the same however the samples of a step are divided. If the weight of a
  // whole step is 0, the number of samples divides. Backward does not pass through the weight. Empty: the loss is a mean
  // over samples.
  Node weight = {};
  std::vector<Metric> metrics = {};
  ValidationSums validation = {};
};

// Throws UserError if the store is not empty and contains no trainable parameter.
PLEXAURA_API void check_trains(const ParameterStore& store);

// Throws UserError if the outputs have no loss.
PLEXAURA_API void check_loss_is_given(const LossOutputs& outputs);

// Throws UserError if the loss is missing, belongs to another graph or has another dtype than the store; if
// the store's dtype is neither float32 nor float64; for more than `most_metrics` metrics, or one less if the loss
// has a weight; for a metric that belongs to another graph, is no scalar of the store's dtype, has no name of its
// own, or does not have exactly one of mean and sum; if the weight of the loss belongs to another graph, is no
// scalar of the store's dtype, or depends on a trainable parameter without a stop_gradient(); and if the sums for
// validation belong to another graph, are not floating, or
// are missing although there is a function of values.
PLEXAURA_API void check_model(const Graph& graph, const LossOutputs& outputs, const ParameterStore& store);

// Appends to a model's graph what a gradient program computes: gradients, updates of buffers and the tail. Returns these
// outputs. The output of a buffer is what its update adds to the old value; for replaced_buffers() it is the next value.
// This output is multiplied by this micro-batch's share of the step's samples. Gradients of a loss with a weight are
// those of its sum over the number of the step's samples: the update divides them by the mean weight of a sample. With
// `samples` = 0, gradients, updates of buffers and loss are zero. Only the parameters in `trained` get gradients; null:
// all trainable ones. Throws UserError if the loss does not use one of them, and what check_model() throws.
PLEXAURA_API std::vector<ProgramOutput> training_outputs(Graph& graph, const LossOutputs& outputs,
                                                         const ParameterStore& store, std::int64_t samples,
                                                         const std::set<std::string>* trained = nullptr);

// Returns the names of the buffers that the graph updates.
PLEXAURA_API std::set<std::string> updated_buffers(const Graph& graph);

// Returns the names of the buffers whose next value is not the old value plus an addend. The outputs of a step, summed over
// ranks and micro-batches, are the next values of these buffers; of all other buffers they are what is added to the old
// values.
PLEXAURA_API std::set<std::string> replaced_buffers(const Graph& graph);

// True if an op of the program sums over all ranks.
PLEXAURA_API bool sums_over_ranks(const Program& program);

struct MicroBatchInputs {
  std::span<const Feed> feeds;
  std::int64_t samples = 0;       // samples of this micro-batch; they select the program
  std::int64_t first_sample = 0;  // position of the first sample in the step's global batch
};

struct StepInputs {
  // This rank's micro-batches, at least one, as many as on every other rank.
  std::span<const MicroBatchInputs> micro_batches = {};
  // The micro-batches are divided, in order, into this many shards of the same number of micro-batches. The gradients of
  // each shard are kept separately, for a strategy that adds them as if they came from several ranks.
  std::int64_t shards = 1;
  std::int64_t global_samples = 1;  // samples of the step over all ranks and micro-batches
  std::int64_t step = 1;            // number of this update, from 1
  std::int64_t epoch = 0;  // number of the epoch; `epoch` and `ends_epoch` are passed to the strategy
  bool ends_epoch = false;
  double learning_rate = 0;
  // Factor of the loss and so of the gradients; if it is not 1, the update must divide by it.
  double loss_scale = 1;
  std::int64_t seed = 0;
  bool updates_weights = true;      // false: the program of add_gradient_program() makes the step
  bool stop = false;                // this rank was asked to stop
  std::exception_ptr failure = {};  // why this rank has no batch; null if it has one
};

// Makes training steps. A step computes the gradients of each micro-batch, exchanges them by the strategy,
// and updates the parameters bucket by bucket. All ranks make the same step together. Programs are compiled
// before they are added. Each number of samples needs a program for a step with one micro-batch; if a step or
// a shard has several, it needs programs for the first, the last and the other micro-batches. Throws
// UserError for a step while another thread makes one, and if the backend was destroyed. A backend that a
// std::shared_ptr owns is kept alive.
class PLEXAURA_API TrainingStep {
 public:
  // Steps allocate nothing once every program has run from each of its slots. The strategy must outlive this object. Throws
  // what check_strategy_parts() throws.
  TrainingStep(Backend& backend, ParameterStore& store, const StrategyInUse& strategy,
               std::int64_t bucket_bytes, bool watch = false, Profile* profile = nullptr);
  ~TrainingStep();

  WeightsImmigration& border() { return border_; }

  // Sets one update program per bucket, null for a bucket without an update. It is called before
  // add_program() if the strategy declares updates_late. The programs replace the `update` of add_program().
  // The update of a bucket must not need the gradients of other buckets, and the model must not sum over
  // ranks.
  void update_late(const std::vector<std::shared_ptr<const Program>>& updates);

  // Adds the program of a micro-batch of `samples` samples. `gradients` computes the gradients; if `is_first` is false, it
  // adds them to those of the micro-batches before, see add_to_gradients(). `update` reads the gradients and writes values
  // and state in bucket order. It runs after the last micro-batch of a step, and is null for other micro-batches.
  void add_program(std::int64_t samples, bool is_first, std::shared_ptr<const Program> gradients,
                   const Program* update, std::shared_ptr<Workspace> workspace,
                   Collective* collective = nullptr);
  // Adds the program of a step of one micro-batch that updates nothing: the strategy sums its gradients, which stay in the
  // arena for programs of the caller. The strategy must not declare updates_late.
  void add_gradient_program(std::int64_t samples, std::shared_ptr<const Program> gradients,
                            std::shared_ptr<Workspace> workspace, Collective* collective = nullptr);
  // Returns the ops of all added programs that the host computes: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;

  // Runs one step. If the device computes asynchronously, returns before the step is done. If this rank's own work fails,
  // its gradients are set to zero, the tail reports the failure to the other ranks, and metrics() throws it. With `watch`
  // a failure in the update is also kept while the exchange continues; the tail may not report it to the other ranks. If
  // an op of the model sums over ranks, the other ranks would wait there for this rank: then run() throws at once.
  StepTicket run(const StepInputs& inputs);

  // Returns the number of the last step whose update this rank has made or has left open until the next step,
  // even if after_update() threw afterwards. Returns 0 if there is none.
  std::int64_t updated_step() const { return updated_step_; }

  // Makes the open updates. Then the strategy puts those weights into the store that are to be evaluated or
  // saved. All ranks call it together, before the store is read outside of a step.
  void await_weights();
  // Undoes await_weights(): the strategy takes its training weights back. run() calls it. A rank that may call
  // await_weights() again without a run() in between must call it itself.
  void take_weights_back();

  // Waits for the strategy's exchanges of that step and throws their failures, as run() and metrics() do. Other ranks may
  // not have had this failure.
  void await_exchange(const StepTicket& ticket);

  // Returns the metrics of one of the last two steps; waits for this step only. Throws this rank's own failure. Allocates
  // nothing.
  StepMetrics metrics(const StepTicket& ticket);

 private:
  struct Key {
    std::int64_t samples;
    bool is_first;
    bool is_last;
    bool updates_weights;
    auto operator<=>(const Key&) const = default;
  };

  // The work that is done when a program stops at a host point.
  struct PointWork {
    void (TrainingStep::*work)(std::size_t bucket);
    std::size_t bucket;
  };

  HostPoint point(std::size_t instruction, const PointWork& work);
  void add_points_of_late_updates(const Program& gradients, bool final, std::vector<HostPoint>& points);
  void add_points_of_gradients(const Program& gradients, std::vector<HostPoint>& points);
  void add_points_of_update(const Program* update, std::size_t begin, std::vector<HostPoint>& points);
  void compute(const StepInputs& inputs);
  VM& program_of(const StepInputs& inputs, std::size_t micro_batch) const;
  StepBlock block_of(const StepInputs& inputs, const MicroBatchInputs& batch) const;
  void exchange_after_failure(const StepInputs& inputs);
  void clear_gradients(bool stop);
  void begin_update(std::size_t bucket);
  void begin_whole_update();
  void leave_open(const StepInputs& inputs);
  void update_open(std::size_t bucket);
  void update_all_open();
  void announce(std::size_t bucket);
  void after_update(std::int64_t step);
  std::uint64_t push_metrics();

  BackendUse backend_use_;
  Backend& backend_;
  ParameterStore store_;
  Strategy& strategy_;
  const StrategyParts& parts_;  // the strategy's parts
  MetricsRing metrics_;
  bool watch_;
  Profile* profile_;
  std::map<Key, std::unique_ptr<VM>> vms_;
  std::vector<PointWork>
      works_;  // the work at each host point of the programs; the index is the id of the host point
  std::optional<LateUpdates> late_;  // the updates of the step before that are still open
  // Destroyed before the members above: the device may wait for exchanges that the destructor of border_ cancels.
  WeightsImmigration border_;
  bool divides_loss_scale_ = false;  // the update divides by StepInputs::loss_scale
  bool sums_in_programs_ = false;    // an op of a program sums over all ranks
  // The state of the present step.
  std::size_t announced_ = 0;  // number of buckets whose gradients were announced to the strategy
  std::size_t asked_ = 0;      // number of buckets for which before_update() was called
  bool updating_ = false;      // before_update() was called in this step
  bool exchanging_ = false;    // a call of the strategy about the update is under way
  bool skips_ = false;         // true if the strategy skips the update
  // The strategy's answer for each bucket; only used if ranks agree before the update.
  std::vector<UpdateAnswer> exchanged_;
  bool shown_ = false;  // true while the store has the weights that the strategy shows for evaluation
  std::exception_ptr failure_;
  std::uint64_t newest_ = 0;  // number of the last step in `metrics_`
  std::int64_t updated_step_ = 0;
  BusyFlag busy_;
};

}  // namespace plexaura
