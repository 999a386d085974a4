#include "core/device/backend.h"

namespace plexaura {

Memory::~Memory() = default;
Event::~Event() = default;
Recording::~Recording() = default;
Launch::~Launch() = default;
Kernel::~Kernel() = default;

Backend::Backend() : exists_(std::make_shared<std::atomic<bool>>(true)) {}
Backend::~Backend() { exists_->store(false, std::memory_order_relaxed); }

std::unique_ptr<Recording> Backend::record(const std::function<void()>&) { return nullptr; }
std::vector<Region> Backend::regions(const Graph&, NodeId, const Uses&) const { return {}; }
std::vector<Repeat> Backend::repeats(const Graph&, NodeId, const Uses&) const { return {}; }

Region single(const Graph& graph, NodeId node) {
  const NodeRecord& record = graph.record(node);
  Region region{std::string(record.op->name()), {node}, {}, {}};
  region.inputs = record.inputs;
  for (std::uint32_t output = 0; output < record.types.size(); ++output)
    region.outputs.push_back({node, output});
  return region;
}

}  // namespace plexaura
