#include "training/programs/bucket_updates.h"

#include "core/step/training_step.h"

namespace plexaura {

std::string why_not_late(const StrategyParts& parts, const OptimizerSpec& optimizer, const ArenaTypes& types,
                         bool watch, const Program& gradients, bool is_weighted) {
  if (optimizer.max_gradient_norm > 0)
    return "training.optimizer.max_gradient_norm limits the norm of all gradients";
  if (is_weighted) return "the loss is divided by the sum of the weights of all samples of a step";
  if (types.scales_loss()) return "a step with training.precision float16 is skipped whole";
  if (watch) return "training.watch looks at each update";
  if (parts.agrees) return "ranks may be outlived, which agree on each step";
  if (parts.weights != nullptr)
    return "ranks on different kinds of processors take the weights of rank 0 after an update";
  if (sums_over_ranks(gradients)) return "the model itself calls all ranks in each step";
  return {};
}

std::vector<std::shared_ptr<const Program>> compile_bucket_updates(
    const OptimizerSpec& optimizer, const Placement& placement, std::span<const Bucket> buckets,
    const std::set<std::string>& replaced, Backend& backend, Tuner* tuner, bool strict) {
  std::vector<std::shared_ptr<const Program>> programs;
  for (const Bucket& bucket : buckets) {
    Graph graph;
    build_bucket_update(graph, optimizer, placement, bucket, replaced);
    const bool is_empty = graph.updates().empty();
    programs.push_back(
        is_empty ? nullptr
                 : compile(graph, {}, backend, {.placement = &placement, .tuner = tuner, .strict = strict}));
  }
  return programs;
}

}  // namespace plexaura
