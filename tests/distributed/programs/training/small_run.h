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

// 44 samples in batches of 7: shares of unequal size, and a last batch of 2, in which the third rank and
// those behind it have no sample.
struct SmallRunOptions {
  std::string model = "mlp";
  std::string backend = "cpu";
  DType dtype = DType::float64;
  std::int64_t steps = 50;
  std::int64_t micro_batches = 1;
  std::int64_t bucket_bytes = 2048;
  std::int64_t seed = 42;  // of data and dropout
  bool shuffle = true;
  std::optional<std::int64_t> broken_sample = {};
  std::filesystem::path output = {};
  bool resume = false;
  // Called before the ranks compare what they start from.
  std::function<void(ParameterStore&)> change_weights = {};
  // Called when the ranks have agreed that training begins.
  std::function<void(const ParameterStore&)> before_training = {};
  // Where ranks are lost: what those that are left go on with. Without it the run ends.
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

// The parameters of the model, as run_small() begins with them.
ParameterStore make_small_store(const SmallRunOptions& options);

// Trains a small model, as programs do it. All ranks together; throws what the Trainer
// throws.
SmallRunResult run_small(Collective& ranks, Strategy* strategy, const SmallRunOptions& options);

}  // namespace plexaura::testing
