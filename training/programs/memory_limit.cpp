#include "training/programs/memory_limit.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "core/compile/feed_layout.h"

namespace plexaura {

std::string text_of(const MemoryShortage& shortage) {
  return fmt::format(
      "is {} bytes, and {} needs {}{} bytes ({} of them for parameters, gradients, the optimizer's state "
      "and inputs){}; raise it{}",
      shortage.memory, shortage.program, shortage.recomputes ? "at least " : "", shortage.least,
      shortage.others, shortage.recomputes ? ", also if values are computed again" : "", shortage.remedies);
}

StepMemoryError::StepMemoryError(MemoryShortage shortage)
    : UserError("TrainerOptions::memory " + text_of(shortage)), shortage_(std::move(shortage)) {}

std::size_t parameter_bytes(const Placement& placement, std::int64_t states, bool adds) {
  std::size_t bytes = placement.bytes(ArenaKind::value) + placement.bytes(ArenaKind::gradient) +
                      static_cast<std::size_t>(states) * placement.bytes(ArenaKind::state);
  if (placement.types.shadow) bytes += placement.bytes(ArenaKind::shadow);
  if (adds) bytes += placement.bytes(ArenaKind::addend);
  return bytes;
}

std::size_t input_bytes(const Graph& model) {
  FeedLayout layout;
  for (NodeId id = 0; id < model.size(); ++id)
    if (const Leaf* leaf = as_leaf(*model.record(id).op); leaf != nullptr && leaf->kind() == LeafKind::input)
      layout.append(leaf->type());
  return 2 * layout.bytes();
}

std::size_t arena_limit(std::int64_t memory, std::size_t others) {
  const auto bytes = static_cast<std::size_t>(std::max(memory, std::int64_t{0}));
  return bytes > others ? bytes - others : 0;
}

std::string remedies_for(std::int64_t samples, std::int64_t memory, std::size_t others) {
  if (samples <= 1 || arena_limit(memory, others) == 0) return {};
  return ", raise training.micro_batches, with which fewer samples are computed at a time, or lower "
         "training.batch_size";
}

}  // namespace plexaura
