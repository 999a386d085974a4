#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/step/training_step.h"
#include "training/optimizers/optimizer_spec.h"

namespace plexaura {

// The batches whose gradients are added up for the next update.
struct PendingBatches {
  std::int64_t batches = 0;
  std::int64_t samples = 0;  // sum of the batches' longest first axes, over all ranks
  bool has_mean = false;     // the gradients are the mean over the batches
  std::string limits = {};   // limits on the gradients, in order, as texts of calls

  // Throws UserError if the gradients were limited, so that no batch can be added.
  void check_not_limited() const;
  // Throws UserError on all ranks if these have other batches or limits, which would make their weights different.
  void check_same(Collective& ranks) const;
};

// The programs of a step that is made by separate calls: gradients, perhaps of several batches, then limits on them, and
// then the update. They work on the slices of the gradient arena that hold the optimizer's own parameters, so that other
// optimizers of the store may make steps in between. The backend and the ranks must outlive this object. Only one
// thread may use it at a time.
class SeparateStep {
 public:
  // The shapes of one Optimizer share `pending`, since their batches belong to one step. `outputs` are those
  // of training_outputs() for the model. `ranks` is needed by a model that sums over ranks. The store must be
  // placed, and must have the optimizer's states.
  SeparateStep(const LossOutputs& model, std::vector<ProgramOutput> outputs, const ParameterStore& store,
               Backend& backend, std::vector<Bucket> trained, const OptimizerSpec& optimizer,
               Collective& ranks, std::shared_ptr<PendingBatches> pending, bool watch);

  // The gradients of one more batch are added by three calls. keep_batches() keeps the sum of the gradients in the arena,
  // and run(), or a program of the caller, overwrites the gradients. count_batch() returns whether the loss and all
  // gradients are finite. If they are, it updates the buffers; otherwise it drops the gradients of all batches.
  // `samples` is the number of samples of the batch, over all ranks.
  void keep_batches();
  StepMetrics run(std::span<const Feed> feeds, const StepBlock& block);
  bool count_batch(double loss, std::int64_t samples);

  // The number of batches since the last update.
  std::int64_t batches() const { return pending_->batches; }
  void drop() { *pending_ = {}; }

  // Replaces the gradients of the last batch by the mean over all batches. Does nothing when it is called
  // again before the next batch. Returns true if the mean is finite.
  bool take_mean();
  // Limit the gradients: their Euclidean norm as one vector, or the magnitude of each. Return the norm, or the largest
  // magnitude, before the limit.
  double limit_norm(double most);
  double limit_values(double most);
  // Updates the parameters. The next batch begins another step.
  void update(const StepBlock& block);

 private:
  enum class Task : std::uint8_t { gradients, check, buffers, keep, add, mean, norm, values, update, count };

  VM& vm(Task task);
  std::shared_ptr<const Program> compile_for(Task task) const;
  std::shared_ptr<const Program> compile_gradients() const;
  double run_limit(Task task, double most);

  LossOutputs model_;
  std::vector<ProgramOutput> outputs_;
  ParameterStore store_;
  Backend& backend_;
  std::vector<Bucket> trained_;
  OptimizerSpec optimizer_;
  Collective& ranks_;
  bool watch_;
  std::vector<std::unique_ptr<VM>> vms_;  // a VM for each task, made when it is first needed
  std::shared_ptr<PendingBatches> pending_;
};

}  // namespace plexaura
