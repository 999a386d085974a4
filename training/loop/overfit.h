#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "training/loop/trainer_options.h"

// The test whether a model can learn a few samples by heart, as a correct model with correct training can.
namespace plexaura {

struct OverfitGoal {
  double share = 0.1;         // the loss has to fall to this share of the first loss
  std::int64_t steps = 1000;  // the largest number of steps
};

struct OverfitResult {
  double first_loss = 0;  // mean loss of all samples before the first step
  double loss = 0;        // mean loss of all samples after the last epoch
  std::int64_t steps = 0;
  bool is_learned = false;
  int signal = 0;                                // the signal that ended the run early; 0: none
  std::vector<std::string> dead_gradients = {};  // see StepRecord
};

// Trains on the samples, and validates on the same ones after each epoch, until the loss has reached the goal
// or the steps are used up. The learning rate stays at the peak of the schedule (Schedule::peak()). The run
// also ends early on a signal, like every run of a Trainer. Uses neither the validation data nor the goal of
// the options, and writes no checkpoints. All ranks call it together and get the same result. Throws
// UserError for a goal that is always or never reached, and for a stream. Throws what the Trainer throws.
OverfitResult overfit(TrainerParts parts, TrainerOptions options, const OverfitGoal& goal = {});

}  // namespace plexaura
