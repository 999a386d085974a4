#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/device/collective.h"
#include "core/vm/training_step.h"
#include "training/data/sampler.h"
#include "training/solver.h"

namespace plexaura {

// Builds a model and its loss for one micro-batch: samples [n, ...] of the store's dtype, labels int64 [n].
// Called once per program, with graphs of either mode.
using ModelBuilder = std::function<LossOutputs(Graph& graph, Node samples, Node labels)>;

struct ProgramOptions {
  SolverOptions solver;
  std::int64_t bucket_bytes = 25 << 20;
  bool watch = false;
  Profile* profile = nullptr;
};

// Sums over the samples that were looked at.
struct Evaluation {
  double loss = 0;
  double correct = 0;
  double correct_top5 = 0;
  double samples = 0;
};

// All programs of a run, compiled before step one: gradients for every size that a micro-batch of this rank
// has, the update, and validation. They share one store and one workspace of the largest peak. The store,
// the backend, the collective, the strategy and the profile must outlive it. One thread at a time.
class TrainingPrograms {
 public:
  // Places the store: the placement of rank 0 is broadcast, so that it is the same everywhere. All ranks
  // construct together; a rank that fails takes all with it. `train` and `validation` say which sizes occur.
  TrainingPrograms(ModelBuilder model, Shape sample_shape, ParameterStore& store, Backend& backend,
                   Collective& collective, Strategy* strategy, const BatchPlan& train,
                   const BatchPlan& validation, const ProgramOptions& options);

  TrainingStep& step() { return *step_; }
  // Loss and hits of one batch, in inference mode.
  Evaluation evaluate(const Tensor& samples, const Tensor& labels);

  // The gradient program of the largest micro-batch: what --dry-run prints.
  const Program& largest() const { return *gradients_.rbegin()->second; }
  // Whether the model tells if a label is among the five largest.
  bool has_top5() const { return has_top5_; }
  std::size_t workspace_bytes() const { return workspace_->bytes(); }
  // Of what all ranks must do alike: the graphs of gradients and update, the placement and the buckets. Ranks
  // with other shares of a batch, or on other processors, have the same.
  std::uint64_t plan_hash() const { return plan_hash_; }
  // Of the kernels and layouts chosen for the update and for the sizes of micro-batches that all ranks have:
  // equal where the kinds of the backends are.
  std::uint64_t kernels_hash() const { return kernels_hash_; }

 private:
  std::shared_ptr<const Program> compile_gradients(std::int64_t samples, bool accumulate,
                                                   const Placement* placement);
  std::shared_ptr<const Program> compile_evaluation(std::int64_t samples);
  LossOutputs build(Graph& graph, std::int64_t samples);
  void place(Collective& collective, Strategy* strategy, std::int64_t samples);
  void compile_all(const BatchPlan& train, const BatchPlan& validation, std::int64_t rank);
  void make_machines(Strategy* strategy, Collective& collective, const ProgramOptions& options);
  std::uint64_t hash_of_plan(std::int64_t samples);
  std::uint64_t hash_of_kernels(const BatchPlan& train) const;

  ModelBuilder model_;
  Shape sample_shape_;
  ParameterStore& store_;
  Backend& backend_;
  SolverOptions solver_;
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const Program>>
      gradients_;  // by samples, accumulate
  std::map<std::int64_t, std::shared_ptr<const Program>> evaluations_;
  std::shared_ptr<const Program> update_;
  std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<TrainingStep> step_;
  std::map<std::int64_t, std::unique_ptr<VM>> evaluators_;
  bool has_top5_ = false;
  std::uint64_t plan_hash_ = 0;
  std::uint64_t kernels_hash_ = 0;
};

}  // namespace plexaura
