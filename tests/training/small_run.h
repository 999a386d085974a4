#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/params/parameter_store.h"
#include "training/loop/trainer.h"

namespace plexaura::testing {

// Returns samples in memory: points around three centres with labels, the same for every seed of the run.
std::shared_ptr<const SampleSource> points(std::int64_t count, std::int64_t first = 0);

// Return a classifier of points: linear, dropout, linear. In float64.
ParameterStore small_store(std::uint64_t seed = 1);
LossOutputs small_model(const ModelInputs& inputs);

// Returns options: three epochs in batches of 8, with momentum and weight decay.
TrainerOptions momentum();

// Returns all values of a small_store().
std::vector<double> weights(const ParameterStore& store);

// Records everything that a trainer reports.
class Recorder final : public TrainingObserver {
 public:
  void step(const StepRecord& record, std::int64_t) override {
    steps.push_back(record);
    if (after_step) after_step(record);
  }
  void epoch(const EpochRecord& record) override {
    epochs.push_back(record);
    if (after_epoch) after_epoch(record);
  }

  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  std::function<void(const StepRecord&)> after_step;
  std::function<void(const EpochRecord&)> after_epoch;
};

// A whole run on one rank, or on one of several.
struct SmallRun {
  ParameterStore store = small_store();
  Recorder seen;
  TrainingResult result;

  void train(const TrainerOptions& options, std::shared_ptr<const SampleSource> training,
             std::shared_ptr<const SampleSource> validation);
};

}  // namespace plexaura::testing
