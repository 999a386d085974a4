#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/vm/feed_memory.h"
#include "training/data/sample_source.h"
#include "training/data/sampler.h"

namespace plexaura {

struct MicroBatch {
  // One tensor [samples, ...] for each field, in the order of SampleSource::fields().
  std::vector<Tensor> fields;
  std::int64_t samples = 0;       // number of samples, without samples that were left out; may be 0
  std::int64_t first_sample = 0;  // position of the first sample within the step's global batch
};

// The data of one rank for one step.
struct Step {
  std::int64_t epoch = 0;
  std::int64_t step_in_epoch = 0;
  std::int64_t steps_in_epoch = 0;
  std::int64_t global_samples = 0;  // number of samples of all ranks, including samples that were left out
  std::int64_t parts = 1;           // number of parts; each has the same number of micro-batches
  std::vector<MicroBatch> micro_batches;

  bool ends_epoch() const { return step_in_epoch + 1 == steps_in_epoch; }
};

// The data of a rank, step by step and epoch by epoch. Only StreamSteps has an end.
class StepSource {
 public:
  StepSource() = default;
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;
  virtual ~StepSource();

  virtual Step next() = 0;

  // The functions below may be called from any thread.
  // Returns the seconds that next() has waited for data since construction.
  virtual double stall_seconds() const = 0;
  // Returns index and error of the samples that this rank has replaced or left out because they could not be
  // read (OnError::skip).
  virtual std::map<std::int64_t, std::string> skipped() const = 0;
};

// Returns `parts` consecutive parts of a step's batch, divided into micro-batches without fields.
Step step_without_fields(const BatchPlan& plan, std::int64_t epoch, std::int64_t step,
                         std::int64_t first_part, std::int64_t parts = 1);

// Returns uninitialised tensors for `samples` samples, in `memory`. If `memory` is null, they have memory of their own.
std::vector<Tensor> make_fields(std::span<const Field> fields, std::int64_t samples, FeedMemory* memory);

}  // namespace plexaura
