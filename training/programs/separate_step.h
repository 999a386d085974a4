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
  std::int64_t samples = 0;
  bool has_mean = false;  // true: the gradients are the mean over the batches, not those of the last batch
};

// The programs of a step that is made by separate calls: gradients, perhaps of several batches, then limits on them, and
// then the update. They work on the slices of the gradient arena that hold the optimizer's own parameters, so that other
// optimizers of the store may make steps in between. The backend and the ranks must outlive it. Only one thread may use it at a time.
class SeparateStep {
 public:
  // The shapes of one Optimizer share `pending`, since their batches belong to one step. `outputs` are those
  // of training_outputs() for the model. `ranks` is needed by a model that sums over ranks. The store must be
  // placed, and must have the optimizer's states.
  SeparateStep(const LossOutputs& model, std::vector<ProgramOutput> outputs, const ParameterStore& store,
               Backend& backend, std::vector<Bucket> trained, const OptimizerSpec& optimizer,
               Collective& ranks, std::shared_ptr<PendingBatches> pending, bool watch);

  struct BatchResult {
    double loss = 0;
    std::vector<double> metrics = {};
    bool is_finite = false;  // true if the loss and all gradients are finite
  };

  // Computes the gradients of one more batch. If all are finite, also updates the buffers; otherwise drops the gradients of
  // all batches.
  BatchResult add_batch(std::span<const Feed> feeds, const StepBlock& block);
  // Returns the number of batches since the last update, and the number of their samples. A batch has as many
  // samples as its longest first axis.
  std::int64_t batches() const { return pending_->batches; }
  std::int64_t samples() const { return pending_->samples; }
  void drop() { *pending_ = {}; }

  // Replaces the gradients of the last batch by the mean over all batches. Does nothing when it is called
  // again before the next batch. Returns true if the mean is finite.
  bool take_mean();
  bool has_mean() const { return pending_->has_mean; }
  // Limit the gradients: their Euclidean norm as one vector, or the magnitude of each. Return the norm, or
  // the largest magnitude, before the limit.
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
