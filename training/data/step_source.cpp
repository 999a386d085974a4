#include "training/data/step_source.h"

#include <utility>

namespace plexaura {

StepSource::~StepSource() = default;

Step step_without_fields(const BatchPlan& plan, std::int64_t epoch, std::int64_t step,
                         std::int64_t first_part, std::int64_t parts) {
  const Slice global = plan.global_batch(step);
  Step made{epoch, step, plan.steps_per_epoch(), global.count, parts, {}};
  for (std::int64_t part = first_part; part < first_part + parts; ++part)
    for (std::int64_t micro = 0; micro < plan.micro_batches; ++micro) {
      const Slice slice = plan.micro_batch(step, part, micro);
      made.micro_batches.push_back({{}, slice.count, slice.first - global.first});
    }
  return made;
}

std::vector<Tensor> make_fields(std::span<const Field> fields, std::int64_t samples, FeedMemory* memory) {
  std::vector<TensorType> types;
  types.reserve(fields.size());
  for (const Field& field : fields) types.push_back({field.type.dtype, batched(samples, field.type.shape)});
  if (memory != nullptr) return memory->take(std::move(types));
  return {types.begin(), types.end()};
}

}  // namespace plexaura
