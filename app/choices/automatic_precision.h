#pragma once

#include <string>
#include <vector>

#include "app/choices/rank_choice.h"
#include "app/options/command_line.h"
#include "app/options/run_config.h"
#include "core/params/parameter_store.h"
#include "distributed/communicator/communicator.h"
#include "models/zoo/model.h"
#include "training/data/sample_source.h"

namespace plexaura {

// The seconds that a rank needs for one micro-batch of a training step, without the exchange of gradients.
struct PrecisionTimes {
  double float32 = 0;
  double bfloat16 = 0;

  // Returns the name of the precision to train in. bfloat16 rounds more, so it must take at most 0.95 of the time.
  std::string faster() const;
};

// The training step that is timed.
struct StepToTime {
  Model& model;
  std::vector<ParameterSpec> parameters;
  std::vector<Field> fields;  // of a sample
  std::int64_t samples;       // of the largest micro-batch of a rank
};

// Replaces `training.precision: auto` in the options by the precision of the checkpoint from which the run
// resumes. Without a checkpoint rank 0 times training steps in float32 and in bfloat16, while the others wait, and all
// take the faster one; if a step in one of them needs more than training.memory, the other one. A dry run measures nothing and takes
// float32. Throws UserError on all ranks for a checkpoint in another precision. Collective.
ChoiceReport decide_precision(const CommandLine& line, Communicator& ranks, StepToTime step,
                              RunOptions& options);

}  // namespace plexaura
