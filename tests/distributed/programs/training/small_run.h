#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/exchange/collective.h"
#include "core/exchange/rank_lost.h"
#include "core/exchange/strategy.h"
#include "training/loop/trainer.h"

namespace plexaura::testing {

// Trains on 44 samples in batches of 7: shares differ in size, and the last batch of 2 has no sample for the
// third rank and those after it.
struct SmallRunOptions {
  std::string model = "mlp";
  std::string backend = "cpu";
  DType dtype = DType::float64;
  std::int64_t steps = 50;
  std::int64_t micro_batches = 1;
  std::int64_t bucket_bytes = 2048;
  std::int64_t seed = 42;  // for data and dropout
  bool shuffle = true;
  std::optional<std::int64_t> broken_sample = {};
  std::filesystem::path output = {};
  bool resume = false;
  // Called before the ranks compare their initial values.
  std::function<void(ParameterStore&)> change_weights = {};
  // Called when the ranks have agreed that training begins.
  std::function<void(const ParameterStore&)> before_training = {};
  // Called when ranks are lost. Returns the collective and the strategy with which the others continue. If it
  // is empty, the run ends.
  std::function<std::pair<Collective*, Strategy*>(const RankLost&)> regroup = {};
  // Called after each step with its number.
  std::function<void(std::int64_t)> after_step = {};
};

// The strategies that give the same sums on all ranks.
inline const std::vector<std::string> summing_strategies{"allreduce", "reduce-broadcast", "scatter-gather"};

struct SmallRunResult {
  TrainingResult training;
  std::map<std::string, Tensor> weights;
};

// Returns a store with the parameters with which run_small() begins.
ParameterStore make_small_store(const SmallRunOptions& options);

// Trains a small model like programs do. Collective. Throws what the Trainer throws.
SmallRunResult run_small(Collective& ranks, Strategy* strategy, const SmallRunOptions& options);

}  // namespace plexaura::testing
