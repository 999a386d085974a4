#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/step/training_step.h"
#include "training/data/sampler.h"
#include "training/optimizers/optimizer_spec.h"
#include "training/programs/evaluation.h"
#include "training/programs/label_inputs.h"
#include "training/programs/memory_limit.h"
#include "training/programs/model_inputs.h"

namespace plexaura {

struct ProgramOptions {
  OptimizerSpec optimizer = {};
  std::int64_t bucket_bytes = 25 << 20;
  bool watch = false;
  Profile* profile = nullptr;
  // Chooses kernels by measured times. Given on all ranks or on none, and for these programs only: it is frozen once they
  // are compiled. Null: estimates choose kernels.
  Tuner* tuner = nullptr;
  // The parts that this rank computes, of those into which the plan divides a step. Empty: the part with this
  // rank's number.
  Slice own_parts = {};
  // True: this rank makes its steps without the other ranks, and may get any part. So no program may call all
  // ranks.
  bool draws_parts = false;
  bool parts_may_move = false;      // true: parts may move between ranks, so no program may call all ranks
  bool buckets_change_bits = true;  // true: other bucket_bytes may change the rounding
  bool strict = false;              // see CompileOptions::strict
  // The most bytes that a step may need on this rank: see TrainerOptions::memory. Empty: no limit.
  std::optional<std::int64_t> memory = {};
};

// The memory of a step, and what its limit costs.
struct StepMemory {
  // Bytes of parameters, gradients, optimizer state, intermediate values and inputs, as planned.
  std::size_t bytes = 0;
  std::size_t unlimited_bytes = 0;  // the same without computing values again
  std::size_t others = 0;           // the part of `bytes` that is not intermediate values
  // The share of the time of forward and backward pass in which values are computed again, from 0 to 1, by
  // the estimates of the backend.
  double share_again = 0;
};

// All programs of a run, compiled before the first step: gradients for every size of a micro-batch of this rank (with
// ProgramOptions::draws_parts: of any rank), the update, and the Evaluator's programs for validation. They share one store,
// and one workspace that is as large as the largest program needs. The store, the backend, the collective, the
// strategy, the profile and the tuner must outlive this object. Only one thread may use it at a time.
class TrainingPrograms {
 public:
  // Places the store. Rank 0 broadcasts its placement and the times of kernels that it knows, so that both are equal on all
  // ranks. Missing times are measured by the lowest rank of each kind of processor, for all ranks of this kind and all
  // their sizes; the other ranks wait, however long it takes. All ranks construct together; if one fails, all throw.
  // `train` and `validation` determine which sizes of batches occur.
  TrainingPrograms(ModelBuilder model, std::vector<Field> fields, ParameterStore& store, Backend& backend,
                   Collective& collective, const StrategyInUse& strategy, const BatchPlan& train,
                   const BatchPlan& validation, const ProgramOptions& options);

  TrainingStep& step() { return *step_; }
  // Returns the strategy of this run, and its parts as they were read at construction.
  const StrategyInUse& strategy() const { return strategy_; }
  // Returns the memory in which batches should be created: programs read them from there without a copy.
  std::shared_ptr<FeedMemory> feed_memory() const { return {workspace_, &workspace_->feeds()}; }
  // Converts the fields of a micro-batch to feeds; floating fields get the dtype of the store. Throws UserError for a label
  // that is not a class of softmax_cross_entropy().
  std::vector<Feed> feeds(const std::vector<Tensor>& values) const;
  // Returns the Evaluator for validation.
  Evaluator& evaluator() { return evaluator_; }

  // Returns why a strategy that declares updates_late gets no late updates, as a text that continues a sentence after
  // "because". Empty if it gets them.
  const std::string& why_not_late() const { return why_not_late_; }

  // Returns the gradient program of the largest micro-batch, which --dry-run prints.
  const Program& largest() const { return *gradients_.rbegin()->second; }
  // Returns the names of the metrics that the model reports.
  const std::vector<std::string>& metric_names() const { return evaluator_.metric_names(); }
  // The LossScale with which a run in float16 begins. The same on all ranks.
  LossScale first_loss_scale(const BatchPlan& train) const;
  // Returns the ops that the host computes in these programs: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;
  std::size_t workspace_bytes() const { return workspace_->bytes(); }
  // Returns the memory of a step whose micro-batches have the largest size.
  const StepMemory& memory() const { return memory_; }
  // Returns a hash of what is equal on all ranks: the graphs of gradients and update, the placement and the
  // buckets. It does not depend on this rank's share of a batch or on its processor.
  std::uint64_t plan_hash() const { return hashes_.plan; }
  // Returns a hash of the kernels and layouts for the update and for the sizes of micro-batches that all
  // ranks have. It is equal on ranks with the same kind of backend.
  std::uint64_t kernels_hash() const { return hashes_.kernels; }
  // Returns a hash of the kernels for the sizes of this rank's first part of a batch, or of all parts if a
  // dealer deals them out. It leaves out the update if other buckets give the same bits. On the lowest rank
  // it does not change when other ranks are lost and their parts are taken over (TakenParts).
  std::uint64_t own_kernels_hash() const { return hashes_.own_kernels; }
  // Returns the measured times by which the kernels of all ranks were chosen; empty without a Tuner. A Tuner with
  // these times chooses the same kernels for the same programs.
  const std::string& kernel_times() const { return kernel_times_; }

 private:
  struct Hashes {
    std::uint64_t plan = 0;
    std::uint64_t kernels = 0;
    std::uint64_t own_kernels = 0;
  };

  std::shared_ptr<const Program> compile_gradients(std::int64_t samples, const BatchPlan& plan,
                                                   const Placement* placement);
  BuiltModel build(std::int64_t samples) const;
  void place(Collective& collective, const BatchPlan& plan);
  void share_kernel_times();
  void measure_kernels(const BatchPlan& train, const BatchPlan& validation);
  void drop_sizes_of_others(const BatchPlan& train, const BatchPlan& validation);
  std::set<std::int64_t> own_sizes(const BatchPlan& train) const;
  std::string times_in_use() const;
  void compile_part(const BatchPlan& train, std::int64_t part);
  void compile_validation(const BatchPlan& validation, std::int64_t rank);
  void make_machines(std::int64_t micro_batches);
  void find_other_memory(const BatchPlan& train, const BatchPlan& validation);
  void find_memory(std::size_t arena_bytes);
  void check_memory(const std::map<std::int64_t, std::shared_ptr<const Program>>& adding) const;
  StepMemoryError too_much_memory(const std::string& program, std::size_t arena_bytes, bool recomputes,
                                  const std::string& helps) const;
  // Returns what reduces the arena of a program for `samples` samples at a time: see MemoryShortage.
  std::string remedies(std::int64_t samples) const;
  void make_updates_late();
  // `adding` has the programs of micro-batches after the first one, by number of samples.
  void add_programs(std::int64_t micro_batches,
                    const std::map<std::int64_t, std::shared_ptr<const Program>>& adding);
  std::uint64_t hash_of_plan(std::int64_t samples);
  std::uint64_t hash_of_kernels(const std::set<std::int64_t>& sizes, bool with_update) const;

  ModelBuilder model_;
  std::vector<Field> fields_;
  std::vector<LabelInput> labels_;
  Evaluator evaluator_;
  ParameterStore& store_;
  Backend& backend_;
  Collective& collective_;
  ProgramOptions options_;
  StrategyInUse strategy_;
  // The gradient program for each number of samples.
  std::map<std::int64_t, std::shared_ptr<const Program>> gradients_;
  std::optional<std::set<std::string>> replaced_;  // names of the buffers: see replaced_buffers()
  std::shared_ptr<const Program> update_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<TrainingStep> step_;
  Hashes hashes_;
  bool measures_ = true;  // true if this rank measures the kernels of its kind of processor
  std::string why_not_late_;
  std::string kernel_times_;
  StepMemory memory_;
};

}  // namespace plexaura
