// A step that trains on nothing: see core/device/described_backend.h.

#include <algorithm>

#include "training/data/step_source.h"
#include "training/loop/step_runner.h"
#include "training/loop/trainer.h"

namespace plexaura {

void Trainer::step_on_zeros() {
  require_programs();
  const auto memory = programs_->feed_memory();
  Step step = step_without_fields(train_plan_, 0, 0, parts_.collective->rank());
  for (MicroBatch& batch : step.micro_batches) {
    batch.fields = make_fields(parts_.train->fields(), batch.samples, memory.get());
    for (Tensor& field : batch.fields) std::fill_n(field.data(), field.bytes(), std::byte{0});
  }
  const StepInputs inputs{.global_samples = step.global_samples, .seed = options_.seed};
  runner_->launch(step, inputs);
}

}  // namespace plexaura
