#include "backends/cpu/kernel_cache.h"

#include <algorithm>
#include <fmt/format.h>

namespace plexaura {

namespace {

// A value as a region sees it: the number of one of its inputs, or a node of its own.
std::string reference(const Region& region, Value value) {
  const auto node = std::ranges::find(region.nodes, value.node);
  if (node != region.nodes.end()) return fmt::format("%{}.{}", node - region.nodes.begin(), value.output);
  return fmt::format("#{}", std::ranges::find(region.inputs, value) - region.inputs.begin());
}

std::string text_of(const RegionQuery& query, const Candidate& candidate, bool accumulate) {
  const Region& region = query.region;
  std::string text = fmt::format("{} {}", region.kind, candidate.implementation);
  if (accumulate) text += " accumulate";
  for (const NodeId node : region.nodes) {
    const NodeRecord& record = query.graph.record(node);
    text += fmt::format("\n{} {{{}}}", record.op->name(), to_string(describe(*record.op)));
    for (const Value input : record.inputs) text += fmt::format(" {}", reference(region, input));
  }
  for (std::size_t i = 0; i < region.inputs.size(); ++i)
    text += fmt::format("\n{} {}", to_string(query.type(region.inputs[i])), to_string(candidate.inputs[i]));
  for (std::size_t i = 0; i < region.outputs.size(); ++i)
    text += fmt::format("\n{} {} {} {}", reference(region, region.outputs[i]),
                        to_string(query.type(region.outputs[i])), to_string(candidate.outputs[i]),
                        query.wanted[i] ? "wanted" : "unwanted");
  return text;
}

std::vector<std::shared_ptr<const Op>> ops_of(const RegionQuery& query) {
  std::vector<std::shared_ptr<const Op>> ops;
  for (const NodeId node : query.region.nodes) ops.push_back(query.graph.record(node).op);
  return ops;
}

}  // namespace

std::shared_ptr<const Kernel> KernelCache::get(const RegionQuery& query, const Candidate& candidate,
                                               bool accumulate, const Make& make) {
  std::string text = text_of(query, candidate, accumulate);
  std::vector<std::shared_ptr<const Op>> ops = ops_of(query);
  const auto same_op = [](const auto& a, const auto& b) { return *a == *b; };
  const auto [first, last] = kernels_.equal_range(text);
  for (auto entry = first; entry != last; ++entry)
    if (std::ranges::equal(entry->second.ops, ops, same_op)) return entry->second.kernel;
  std::shared_ptr<const Kernel> kernel = make();
  kernels_.emplace(std::move(text), Entry{std::move(ops), kernel});
  return kernel;
}

}  // namespace plexaura
