#include "core/device/evaluate.h"

#include <algorithm>

#include "core/device/transfer.h"
#include "core/graph/print.h"

namespace plexaura {

std::vector<Tensor> evaluate(Backend& backend, const Graph& graph, NodeId node,
                             std::span<const Tensor> inputs) {
  const Region region = single(graph, node);
  RegionQuery query{graph, region, {}, std::vector<bool>(region.outputs.size(), true)};
  for (const Tensor& input : inputs) query.given.emplace_back(Layout::row_major(input.shape().rank()));
  const std::vector<Candidate> candidates = backend.propose(query);
  if (candidates.empty()) return {};
  const Candidate& candidate = *std::ranges::min_element(candidates, {}, &Candidate::seconds);
  if (!candidate.has_estimate()) return {};

  std::vector<std::unique_ptr<Memory>> held;
  const auto allocate = [&](std::int64_t bytes) {
    held.push_back(backend.allocate(static_cast<std::size_t>(bytes), MemoryUse::device));
    return held.back()->address();
  };
  Binding binding;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    binding.inputs.push_back(allocate(candidate.inputs[i].bytes(inputs[i].type())));
    write_value(backend, binding.inputs[i], candidate.inputs[i], inputs[i]);
  }
  for (std::size_t i = 0; i < region.outputs.size(); ++i)
    binding.outputs.push_back(allocate(candidate.outputs[i].bytes(query.type(region.outputs[i]))));
  const auto kernel = candidate.make();
  binding.workspace = allocate(static_cast<std::int64_t>(kernel->workspace()));
  const std::string name = name_of(graph, node);
  binding.name = &name;
  const auto launch = kernel->bind(binding);
  launch->run();
  wait_for(backend);

  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < region.outputs.size(); ++i)
    outputs.push_back(
        read_value(backend, binding.outputs[i], query.type(region.outputs[i]), candidate.outputs[i]));
  return outputs;
}

}  // namespace plexaura
