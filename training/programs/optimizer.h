#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/busy.h"
#include "core/step/training_step.h"
#include "training/optimizers/optimizer_spec.h"
#include "training/optimizers/schedule.h"
#include "training/programs/label_inputs.h"

namespace plexaura {

struct OptimizerOptions {
  OptimizerSpec optimizer = {};
  Schedule learning_rate = 0.01;  // a number, or a Schedule
  std::int64_t seed = 0;          // of dropout
  bool watch = false;             // fail with the op that makes the first NaN or infinite number
};

// Training by hand, on one rank: gradients of a loss and the update of its parameters, compiled once. The
// graph says the shapes of the inputs; the loss may be of any kind, and need not be a mean over samples. The
// Optimizer shares the store, which may be moved or destroyed, and the backend where a std::shared_ptr owns it; otherwise
// the backend outlives it. One thread at a time: UserError for a step while another thread makes one. Where the model sums over all ranks, this is the only one.
class Optimizer {
 public:
  // Extends the graph of the loss by its gradients, or a copy of it where the store has a mixed precision, and places the store: a VM that was made with the store
  // before has to be made anew. Begins with the store's weights, and with the state of an optimizer that has made no step. Throws UserError for a trainable parameter that the loss does not use,
  // for a store of which all is frozen, and for batch normalisation over one element per channel.
  Optimizer(const LossOutputs& outputs, ParameterStore& store, Backend& backend,
            const OptimizerOptions& options = {});

  // Feeds the graph's inputs, updates the parameters and returns the loss before the update. Feeds as for
  // VM::run. UserError for a label that softmax_cross_entropy() has no class for, and for a loss or a gradient that is
  // not finite: parameters, buffers, state and steps() are then as before the call. In float16 a step whose gradients
  // are not finite is skipped, and counted: see LossScale.
  double step(std::span<const Feed> feeds);
  double step(std::initializer_list<Feed> feeds);

  // A metric of the last step: its mean, or its sum, as the model gave it. UserError for an unknown name, and
  // before the first step.
  double metric(std::string_view name) const;
  // Made in all, those before resume() included.
  std::int64_t steps() const { return store_.updates(); }

  // Writes a checkpoint, as save_checkpoint() does and with its errors. One process at a time.
  void save(const std::filesystem::path& directory, int keep = 1) const;
  // Goes on from the newest checkpoint in the folder, so that the steps that follow have the bits of a run that was
  // never stopped, where they are fed the same; false where there is none. Throws as load_checkpoint(), and UserError
  // for one that was made with another seed.
  bool resume(const std::filesystem::path& directory);

 private:
  [[noreturn]] void throw_diverged(std::int64_t step, double loss) const;

  OptimizerOptions options_;
  std::vector<std::string> metric_names_;
  std::vector<LabelInput> labels_;
  ParameterStore store_;
  StrategyInUse alone_{nullptr};
  std::unique_ptr<TrainingStep> step_;
  std::optional<StepMetrics> metrics_;  // of the last step
  BusyFlag busy_;
};

}  // namespace plexaura
