#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/step/training_step.h"
#include "training/programs/label_inputs.h"
#include "training/programs/model_inputs.h"
#include "training/programs/separate_step.h"

namespace plexaura {

// The names and types of a batch.
using FeedTypes = std::vector<std::pair<std::string, TensorType>>;
// Returns the names and types of the feeds, ordered by name.
FeedTypes types_of(std::span<const Feed> feeds);

// The programs that an Optimizer has made for batches of one shape.
struct OptimizerShape {
  FeedTypes batch;  // empty: the shapes are those of the user's graph
  BuiltModel model;
  std::vector<LabelInput> labels;
  std::vector<ProgramOutput> outputs;  // outputs of the program of gradients
  // The programs for the present placement of the store; null if they are not compiled.
  std::shared_ptr<const Program> gradients = nullptr;
  std::shared_ptr<const Program> update = nullptr;
  std::unique_ptr<TrainingStep> step = nullptr;      // null while the programs have no memory
  std::unique_ptr<SeparateStep> separate = nullptr;  // made by the first call of gradients()

  // Drops the objects that depend on the placement of the store.
  void forget_programs() {
    step.reset();
    separate.reset();
    gradients.reset();
    update.reset();
  }
};

}  // namespace plexaura
