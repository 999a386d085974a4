#include "core/device/evaluate.h"

#include <algorithm>

#include "core/device/transfer.h"
#include "core/graph/print.h"

namespace plexaura {

namespace {

std::unique_ptr<Memory> allocate(Backend& backend, std::int64_t bytes) {
  return backend.allocate(std::max<std::size_t>(static_cast<std::size_t>(bytes), 64), MemoryUse::device);
}

std::unique_ptr<Memory> upload(Backend& backend, const Tensor& tensor, const Layout& layout) {
  std::vector<std::byte> physical(static_cast<std::size_t>(layout.bytes(tensor.type())));
  reorder(tensor.data(), Layout::row_major(tensor.shape().rank()), physical.data(), layout, tensor.type());
  auto memory = allocate(backend, static_cast<std::int64_t>(physical.size()));
  copy_to_device(backend, memory->address(), physical.data(), physical.size());
  return memory;
}

Tensor download(Backend& backend, Address address, const TensorType& type, const Layout& layout) {
  std::vector<std::byte> physical(static_cast<std::size_t>(layout.bytes(type)));
  copy_to_host(backend, physical.data(), address, physical.size());
  Tensor tensor(type);
  reorder(physical.data(), layout, tensor.data(), Layout::row_major(type.shape.rank()), type);
  return tensor;
}

}  // namespace

std::vector<Tensor> evaluate(Backend& backend, const Graph& graph, NodeId node,
                             std::span<const Tensor> inputs) {
  const Region region = single(graph, node);
  RegionQuery query{graph, region, {}, std::vector<bool>(region.outputs.size(), true)};
  for (const Tensor& input : inputs) query.given.emplace_back(Layout::row_major(input.shape().rank()));
  const std::vector<Candidate> candidates = backend.propose(query);
  if (candidates.empty()) return {};
  const Candidate& candidate = *std::ranges::min_element(candidates, {}, &Candidate::seconds);

  std::vector<std::unique_ptr<Memory>> held;
  Binding binding;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    held.push_back(upload(backend, inputs[i], candidate.inputs[i]));
    binding.inputs.push_back(held.back()->address());
  }
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    held.push_back(allocate(backend, candidate.outputs[i].bytes(query.type(region.outputs[i]))));
    binding.outputs.push_back(held.back()->address());
  }
  const auto kernel = candidate.make(false);
  held.push_back(allocate(backend, static_cast<std::int64_t>(kernel->workspace())));
  binding.workspace = held.back()->address();
  const std::string name = name_of(graph, node);
  binding.name = &name;
  const auto launch = kernel->bind(binding);
  launch->run();
  wait_for(backend);

  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < region.outputs.size(); ++i)
    outputs.push_back(
        download(backend, binding.outputs[i], query.type(region.outputs[i]), candidate.outputs[i]));
  return outputs;
}

}  // namespace plexaura
