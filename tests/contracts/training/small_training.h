#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/step/training_step.h"
#include "training/optimizers/optimizer_spec.h"

namespace plexaura::testing {

// Inputs "x" and targets "t" of some samples. Axis 0 is the sample.
struct Batch {
  Tensor x;
  Tensor t;
  std::int64_t samples() const { return x.shape()[0]; }
};

// Returns `count` samples of the batch, from `first` on.
Batch part(const Batch& batch, std::int64_t first, std::int64_t count);

// Does the work of a trainer for a model of a few nodes: compiles the programs, places the store, and runs
// steps. For tests that look at each step.
class SmallTraining {
 public:
  using Model = std::function<LossOutputs(Graph& graph, const Node& x, const Node& t)>;

  struct Options {
    OptimizerSpec optimizer = {};
    Strategy* strategy = nullptr;
    Collective* collective = nullptr;
    std::int64_t bucket_bytes = 1;          // makes a bucket of each parameter
    std::vector<std::int64_t> sizes = {4};  // sizes of micro-batches
    bool micro_batches = false;             // true: a step has several micro-batches
    const Placement* placement = nullptr;   // null: the placement of the program for the first size
    MemoryProvider gradient_memory = {};
    bool watch = false;
    std::int64_t seed = 0;
    double loss_scale = 1;
    std::optional<ArenaTypes> types = {};  // dtypes of the store's arenas
  };

  // Only the types of the inputs in `like` matter, not its number of samples.
  SmallTraining(Backend& backend, std::vector<ParameterSpec> specs, Model model, const Batch& like,
                Options options);

  // Runs a step without waiting for it. `global_samples` and `first_sample` are needed if other ranks have a
  // share of the batch.
  StepTicket launch(std::span<const Batch> micro_batches, double learning_rate,
                    std::int64_t global_samples = -1, std::int64_t first_sample = 0);
  // Call it if the last step ended with an error: the next step gets its number.
  void give_up_step() { --steps_done_; }
  // Runs a step on one batch and waits.
  StepMetrics step(const Batch& batch, double learning_rate);
  StepMetrics metrics() { return step_->metrics(last_); }  // of the last step

  ParameterStore& store() { return store_; }
  TrainingStep& steps() { return *step_; }
  const Program& gradients(std::int64_t samples) const { return *programs_.at(samples); }
  const Program& update() const { return *update_; }
  Tensor value(std::string_view name) const { return store_.read(name); }

 private:
  std::shared_ptr<const Program> compile_gradients(std::int64_t samples, const Placement* placement);

  Backend& backend_;
  ParameterStore store_;
  Model model_;
  TensorType x_;
  TensorType t_;
  Options options_;
  std::map<std::int64_t, std::shared_ptr<const Program>> programs_;
  std::set<std::string> replaced_;
  bool is_weighted_ = false;
  std::shared_ptr<const Program> update_;
  StrategyInUse strategy_;
  std::unique_ptr<TrainingStep> step_;
  std::int64_t steps_done_ = 0;
  StepTicket last_;
};

// Returns small whole numbers, whose sums and products are exact in float32 in any order.
Tensor whole_numbers(const TensorType& type, std::uint64_t seed, std::int64_t largest = 3);

// Checks that all values with the same names in both stores have equal bits.
void check_same_values(const ParameterStore& a, const ParameterStore& b);

}  // namespace plexaura::testing
