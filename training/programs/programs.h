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
#include "training/programs/model_inputs.h"

namespace plexaura {

struct ProgramOptions {
  OptimizerSpec optimizer = {};
  std::int64_t bucket_bytes = 25 << 20;
  bool watch = false;
  Profile* profile = nullptr;
  // Of kernels, on all ranks or on none, and of these programs alone: when they are compiled it is frozen.
  // Null: estimates choose kernels.
  Tuner* tuner = nullptr;
  // Of the parts into which the plan divides a step: those of this rank. Empty: that of its number.
  Slice own_parts = {};
  // This rank makes its steps without the others, of any part. So no program may call all ranks.
  bool draws_parts = false;
  bool parts_may_move = false;      // between ranks, so that no program may call all ranks
  bool buckets_change_bits = true;  // another size of theirs may round otherwise
  bool strict = false;              // see CompileOptions
};

// All programs of a run, compiled before step one: gradients for every size that a micro-batch of this rank has (with
// ProgramOptions::draws_parts, of any rank), the update, and those of an Evaluator for validation. They share one store, and one
// workspace of the largest peak. The store, the backend, the collective, the strategy and the profile must outlive it. One thread at a
// time.
class TrainingPrograms {
 public:
  // Places the store: the placement of rank 0 is broadcast, so that it is the same everywhere, and so are the
  // times of kernels that it knows. Of each kind of processor the lowest rank measures what is not known, for
  // all of its kind and for the sizes of all ranks; the others wait, however long it takes. All ranks
  // construct together; a rank that fails takes all with it. `train` and `validation` say which sizes occur.
  TrainingPrograms(ModelBuilder model, std::vector<Field> fields, ParameterStore& store, Backend& backend,
                   Collective& collective, const StrategyInUse& strategy, const BatchPlan& train,
                   const BatchPlan& validation, const ProgramOptions& options);

  TrainingStep& step() { return *step_; }
  // The strategy of this run. The programs own what was read of it.
  const StrategyInUse& strategy() const { return strategy_; }
  // Where batches lie best that are fed to the programs.
  std::shared_ptr<FeedMemory> feed_memory() const { return {workspace_, &workspace_->feeds()}; }
  // What the programs are fed: the fields of a micro-batch, floating ones in the dtype of the store. UserError
  // for a label that softmax_cross_entropy() has no class for.
  std::vector<Feed> feeds(const std::vector<Tensor>& values) const;
  // For validation.
  Evaluator& evaluator() { return evaluator_; }

  // Why a strategy that declares updates_late gets no late updates: a text that continues a sentence after "because". Empty if it
  // gets them.
  const std::string& why_not_late() const { return why_not_late_; }

  // The gradient program of the largest micro-batch: what --dry-run prints.
  const Program& largest() const { return *gradients_.rbegin()->second; }
  // Of the metrics that the model reports.
  const std::vector<std::string>& metric_names() const { return evaluator_.metric_names(); }
  // The ops that the host computes in these programs: see Program::ops_on_host().
  std::set<std::string> ops_on_host() const;
  std::size_t workspace_bytes() const { return workspace_->bytes(); }
  // The hash of what is equal on all ranks: the graphs of gradients and update, the placement and the buckets. It does not depend
  // on the share of a batch or on the processor.
  std::uint64_t plan_hash() const { return plan_hash_; }
  // The hash of the kernels and layouts for the update and for the sizes of micro-batches that all ranks have. It is equal on ranks
  // whose backends are of one kind.
  std::uint64_t kernels_hash() const { return kernels_hash_; }
  // The hash of the kernels for the sizes of this rank's first part of a batch, or of all parts if one rank deals them out. It leaves
  // out the update if other buckets give the same bits. On the lowest rank it does not change when other ranks are lost.
  std::uint64_t own_kernels_hash() const { return own_kernels_hash_; }
  // The times by which the kernels of all ranks were chosen, for a Tuner: with these the same programs get the
  // same kernels again.
  const std::string& kernel_times() const { return kernel_times_; }

 private:
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
  void make_updates_late();
  // `adding`: by samples, those of micro-batches after the first.
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
  std::map<std::int64_t, std::shared_ptr<const Program>> gradients_;  // by samples
  std::optional<std::set<std::string>> replaced_;                     // see replaced_buffers()
  std::shared_ptr<const Program> update_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<TrainingStep> step_;
  std::uint64_t plan_hash_ = 0;
  std::uint64_t kernels_hash_ = 0;
  std::uint64_t own_kernels_hash_ = 0;
  bool measures_ = true;  // for its kind of processor
  std::string why_not_late_;
  std::string kernel_times_;
};

}  // namespace plexaura
