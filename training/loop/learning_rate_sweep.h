#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "training/loop/trainer_options.h"

// The range test of the learning rate: Smith, "Cyclical Learning Rates for Training Neural Networks", arXiv:1506.01186.
namespace plexaura {

struct SweepRange {
  double first = 1e-7;  // learning rate of the first step; > 0
  double last = 10;     // learning rate of the last step; larger than `first`
  std::int64_t steps = 100;
};

struct SweptRate {
  double learning_rate = 0;
  double loss = 0;      // loss of the step with this rate, before its update
  double smoothed = 0;  // the mean of the losses of this step and of up to four steps on each side
};

struct LearningRateSweep {
  // The rates and losses in the order of the steps. The sweep ends early if the loss is not finite, or if the
  // mean of five losses in a row is more than four times the smallest such mean.
  std::vector<SweptRate> rates = {};
  // The learning rate at which the smoothed loss falls fastest; empty if the loss falls by less than 5 %, see
  // suggested_rate().
  std::optional<double> suggestion = {};
  // The signal that ended the sweep early; 0: none. After a signal there is no suggestion.
  int signal = 0;
};

// Returns the learning rate at which the smoothed loss falls fastest, among the steps up to its minimum. Empty for fewer
// than three rates, and unless the minimum is at least 5 % below the first value.
std::optional<double> suggested_rate(std::span<const SweptRate> rates);

// Trains with a learning rate that grows by the same factor from step to step, and then restores the weights
// and buffers of the store bit for bit, also if it throws. The state of the optimizer is reset. Random
// numbers are functions of TrainerOptions::seed and of their place in the run, and so are the same in the next
// run. Uses neither the validation data, the schedule nor the goal, and writes no checkpoints. All ranks call it
// together and get the same result. Throws UserError for an empty range, and for a strategy with which each
// rank makes its own steps. Throws what the Trainer throws.
LearningRateSweep sweep_learning_rates(TrainerParts parts, TrainerOptions options,
                                       const SweepRange& range = {});

}  // namespace plexaura
