#pragma once

#include <array>
#include <exception>
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

// A number that is reported beside the loss: a scalar of the store's dtype over the samples of one
// micro-batch, either their mean or their sum. It is reported as a mean over all samples: the sum of hits as
// the accuracy.
struct Metric {
  std::string name;
  Node mean = {};
  Node sum = {};  // exact for counts, whatever the division into micro-batches
};

// What a model gives to training.
struct LossOutputs {
  Node loss;  // the mean over the samples of one micro-batch, a scalar of the store's dtype
  std::vector<Metric> metrics = {};
};

// Throws UserError for a store whose parameters are all frozen; one without parameters is sound.
PLEXAURA_API void check_trains(const ParameterStore& store);

// Throws UserError where a model was given no loss.
PLEXAURA_API void check_loss_is_given(const LossOutputs& outputs);

// Throws UserError for no loss, for a loss or a metric that is not a scalar of the store's dtype or of another
// graph, for more than `most_metrics` metrics, and for two metrics with one name.
PLEXAURA_API void check_model(const Graph& graph, const LossOutputs& outputs, const ParameterStore& store);

// Extends a model's graph by gradients, what buffers get and the tail: what a program for gradients computes. A buffer
// gets the share of the samples times what its update adds to it, or times its next value: see replaced_buffers().
// With `samples` = 0, gradients, what buffers get and loss are zero. Throws UserError for a trainable parameter
// that the loss does not use, and where check_model() does.
PLEXAURA_API std::vector<ProgramOutput> training_outputs(Graph& graph, const LossOutputs& outputs,
                                                         const ParameterStore& store, std::int64_t samples);

// The buffers that the model gives a next value other than the old one plus something. Summed over ranks and
// micro-batches, what a step leaves of these is the next value, and of all others what is added to the old one.
PLEXAURA_API std::set<std::string> replaced_buffers(const Graph& graph);

// Whether an op of the program calls all ranks.
PLEXAURA_API bool sums_over_ranks(const Program& program);

struct MicroBatchInputs {
  std::span<const Feed> feeds;
  std::int64_t samples = 0;       // of this micro-batch: chooses the program
  std::int64_t first_sample = 0;  // position in the step's global batch
};

struct StepInputs {
  std::span<const MicroBatchInputs> micro_batches = {};  // equally many on every rank, at least one
  // Into which the micro-batches fall, equally many into each, in order: the gradients of each shard are kept by
  // themselves, for a strategy that adds them as if they were those of several ranks.
  std::int64_t shards = 1;
  std::int64_t global_samples = 1;  // over ranks and micro-batches
  std::int64_t step = 1;            // number of this update, from 1
  std::int64_t epoch = 0;           // for strategies, as what follows
  bool ends_epoch = false;
  double learning_rate = 0;
  double loss_scale = 1;  // of the gradients; another than 1 needs an update that divides it out
  std::int64_t seed = 0;
  bool stop = false;                // this rank was asked to stop
  std::exception_ptr failure = {};  // this rank has no batch to show because of this
};

// One step of training, the same on every rank: gradients of each micro-batch, the strategy's exchange, the
// update, bucket by bucket. Programs are compiled beforehand: for each number of samples that of a step's only
// micro-batch and, where a step or a shard has several, those of its first, its last and the others. UserError for a
// step while another thread makes one, and after the backend is gone, unless a std::shared_ptr owns that.
class PLEXAURA_API TrainingStep {
 public:
  // Allocates nothing once every program has run from each of its slots. The strategy must outlive the step. Throws UserError where
  // check_strategy_parts() does.
  TrainingStep(Backend& backend, ParameterStore& store, const StrategyInUse& strategy,
               std::int64_t bucket_bytes, bool watch = false, Profile* profile = nullptr);
  ~TrainingStep();

  WeightsImmigration& border() { return border_; }

  // Where the strategy declares updates_late: the update of each bucket by itself, null for a bucket without one, in
  // the place of the programs of add_program(), which come behind this. For updates that need the gradients of no other
  // bucket, and models that do not call all ranks.
  void update_late(const std::vector<std::shared_ptr<const Program>>& updates);

  // What a micro-batch of `samples` samples runs: `gradients` computes them and, where it is not the first of its
  // step, adds them to those of the ones before: see add_to_gradients(). Behind the last one of a step `update` reads the gradients and
  // writes values and state, in bucket order; null for the others.
  void add_program(std::int64_t samples, bool is_first, std::shared_ptr<const Program> gradients,
                   const Program* update, std::shared_ptr<Workspace> workspace,
                   Collective* collective = nullptr);
  // The ops that the host computes in the programs that were added: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;

  // Runs one step; on a device of its own returns before it is done. A failure of this rank's own work is
  // kept, shown to the others in the tail over zeroed gradients, and thrown by metrics(). With `watch` one in the
  // update is kept, too, and the exchange goes on; the others may not see it in the tail. Where an op sums
  // over ranks the others wait there for a rank that failed: it throws at once.
  StepTicket run(const StepInputs& inputs);

  // The number of the last step whose update this rank has made or left open until the next step, even if after_update() threw
  // afterwards. 0: none.
  std::int64_t updated_step() const { return updated_step_; }

  // Makes the updates that are left open, and has the strategy show the weights that are to be looked at: comes before whatever reads the store outside of a step. All ranks call it together.
  void await_weights();
  // The end of that: run() does it, and a rank that may come to await_weights() again without a run in between.
  void take_weights_back();

  // Waits for what the strategy exchanges in that run, and throws what fails there, as run() does: other ranks may
  // have met no failure. metrics() does the same.
  void await_exchange(const StepTicket& ticket);

  // Of one of the last two runs; waits for that run alone. Throws this rank's own failure. Allocates nothing.
  StepMetrics metrics(const StepTicket& ticket);

 private:
  struct Key {
    std::int64_t samples;
    bool is_first;
    bool updates;
    auto operator<=>(const Key&) const = default;
  };

  void add_points_of_late_updates(const Program& gradients, bool final, std::vector<HostPoint>& points);
  void add_points_of_gradients(const Program& gradients, std::vector<HostPoint>& points);
  void add_points_of_update(const Program& update, std::size_t begin, std::vector<HostPoint>& points);
  void attempt(const StepInputs& inputs);
  void run_micro_batches(const StepInputs& inputs);
  void fail(const StepInputs& inputs);
  bool begin_update(std::size_t bucket);
  void begin_whole_update();
  void leave_open(const StepInputs& inputs);
  void update_open(std::size_t bucket);
  void update_all_open();
  void announce(std::size_t bucket);
  // Calls of the strategy, as events of the profile.
  UpdateAnswer before_update(std::size_t bucket);
  void agree();
  void gradients_ready(std::size_t bucket);
  void after_update(std::int64_t step);
  void announce_rest();
  std::uint64_t push_metrics();

  BackendUse backend_use_;
  Backend& backend_;
  ParameterStore store_;
  Strategy& strategy_;
  const StrategyParts& parts_;  // of it
  MetricsRing metrics_;
  bool watch_;
  Profile* profile_;
  std::map<Key, std::unique_ptr<VM>> vms_;
  std::optional<LateUpdates> late_;  // those of the step before
  WeightsImmigration border_;        // goes first: the device may wait for what its destructor gives up
  bool divides_loss_scale_ = false;  // the update
  bool sums_in_programs_ = false;    // over all ranks, by an op
  // Of this step.
  std::size_t announced_ = 0;            // buckets
  std::size_t asked_ = 0;                // buckets whose update the strategy was asked for
  bool updating_ = false;                // the strategy was asked for the update
  bool exchanging_ = false;              // it is asked now
  StepBlock block_;                      // of its last micro-batch
  bool skips_ = false;                   // the strategy skips the update
  std::vector<UpdateAnswer> exchanged_;  // per bucket, where ranks agree before the update
  bool shown_ = false;                   // the store has weights that the strategy shows
  std::exception_ptr failure_;
  std::uint64_t newest_ = 0;  // the step that was pushed last
  std::int64_t updated_step_ = 0;
  BusyFlag busy_;
};

}  // namespace plexaura
