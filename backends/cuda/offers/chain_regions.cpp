#include "backends/cuda/offers/chain_regions.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "backends/regions/batch_norm_regions.h"
#include "backends/regions/chain_growth.h"
#include "core/ops/elementwise.h"

namespace plexaura::cuda {

namespace {

constexpr std::string_view one = "chain ";
constexpr std::string_view several = "chains ";

// The largest number of bytes of the results of chains that share a launch. These results stay in memory
// longer than necessary.
constexpr std::int64_t most_bytes_of_several = std::int64_t{32} << 20;

const TensorType& type_of(const Graph& graph, NodeId node) { return graph.type({node, 0}); }

// True if all dtypes of the node are computed in float, or all in double.
bool fits_together(const Graph& graph, const NodeRecord& record) {
  bool narrow = false;
  bool wide = false;
  const auto look_at = [&](DType dtype) {
    if (dtype == DType::boolean) return true;
    (dtype == DType::float64 ? wide : narrow) = true;
    return is_floating(dtype);
  };
  bool known = look_at(record.types[0].dtype);
  for (const Value input : record.inputs) known = look_at(graph.type(input).dtype) && known;
  return known && !(narrow && wide);
}

// True if the node can be a step of a chain: its operands have the result's shape, or one element.
bool is_step(const Graph& graph, NodeId node, const Uses& uses) {
  const NodeRecord& record = graph.record(node);
  const auto function = step_function(record.op->name());
  if (!function || !is_elementwise(graph, node) || !fits_together(graph, record)) return false;
  const bool has_functor = *function != StepFunction::cast && *function != StepFunction::where;
  if (has_functor && op_cast<FunctionOp>(*record.op).options().values.size() > std::size(Step{}.options))
    return false;
  return !belongs_to_batch_norm(graph, node, uses);
}

bool is_wide(const Graph& graph, NodeId node) {
  const NodeRecord& record = graph.record(node);
  return record.types[0].dtype == DType::float64 || std::ranges::any_of(record.inputs, [&](Value input) {
           return graph.type(input).dtype == DType::float64;
         });
}

// Returns a function that is true for the ops that a chain with this last op may contain.
ChainGrowth::Accepts steps_before(const Graph& graph, const Uses& uses, NodeId last) {
  return [&graph, &uses, wide = is_wide(graph, last), fed = uses.depends_on_feeds(last)](NodeId node) {
    return is_step(graph, node, uses) && is_wide(graph, node) == wide && uses.depends_on_feeds(node) == fed;
  };
}

void append(Region& region, const ChainGrowth& chain) {
  region.nodes.insert(region.nodes.end(), chain.nodes().begin(), chain.nodes().end());
  const std::vector<Value> inputs = chain.inputs();
  region.inputs.insert(region.inputs.end(), inputs.begin(), inputs.end());
  region.outputs.push_back({*chain.nodes().rbegin(), 0});
}

// Adds a region for each length of the chain. If another region takes a node of the longest chain, a shorter
// chain remains possible.
void add_single(const Graph& graph, NodeId last, const Uses& uses, std::vector<Region>& regions) {
  const ChainGrowth::Accepts accepts = steps_before(graph, uses, last);
  ChainGrowth chain(graph, uses, last);
  while (chain.grow(one_chain.steps, one_chain.operands, accepts)) {
    Region region{std::string(one) + chain.ops(), {}, {}, {}};
    append(region, chain);
    regions.push_back(std::move(region));
  }
}

// True if the node can be a step, and its result is an output that no node reads. Always false in programs with
// updates: their results are computed bucket by bucket, when the gradients arrive.
bool is_only_stored(const Graph& graph, NodeId node, const Uses& uses) {
  return graph.updates().empty() && is_step(graph, node, uses) && uses.kept({node, 0}) &&
         uses.readers({node, 0}).empty();
}

// Chains that share a launch. The last chain of the graph comes first.
struct Sharing {
  std::vector<ChainGrowth> chains;
  std::size_t operands = 0;
  std::size_t steps = 0;
  std::int64_t bytes = 0;

  bool has_room_for(const ChainGrowth& chain, std::int64_t bytes_of_result) const {
    return chains.size() < several_chains.chains && steps + chain.nodes().size() <= several_chains.steps &&
           operands + chain.inputs().size() <= several_chains.operands &&
           bytes + bytes_of_result <= most_bytes_of_several;
  }
  void add(ChainGrowth chain, std::int64_t bytes_of_result) {
    steps += chain.nodes().size();
    operands += chain.inputs().size();
    bytes += bytes_of_result;
    chains.push_back(std::move(chain));
  }
};

// Divides chains of stored results into launches, from the end of the graph backwards. Takes only chains of
// the same kind as the chain that ends at `last`. Returns the launch that contains that chain.
Sharing sharing_of(const Graph& graph, NodeId last, const Uses& uses) {
  constexpr ChainLimits of_each{1, 4, 6};
  const bool wide = is_wide(graph, last);
  const bool fed = uses.depends_on_feeds(last);
  Sharing sharing;
  for (auto node = static_cast<NodeId>(graph.size()); node-- > 0;) {
    if (!is_only_stored(graph, node, uses) || is_wide(graph, node) != wide) continue;
    if (uses.depends_on_feeds(node) != fed) continue;
    const ChainGrowth::Accepts accepts = steps_before(graph, uses, node);
    ChainGrowth chain(graph, uses, node);
    while (chain.grow(of_each.steps, of_each.operands, accepts)) {
    }
    const std::int64_t bytes = type_of(graph, node).bytes();
    if (!sharing.has_room_for(chain, bytes)) {
      if (node < last) break;
      sharing = {};
    }
    sharing.add(std::move(chain), bytes);
  }
  return sharing;
}

void add_several(const Graph& graph, NodeId last, const Uses& uses, std::vector<Region>& regions) {
  const Sharing sharing = sharing_of(graph, last, uses);
  if (sharing.chains.size() < 2 || *sharing.chains.front().nodes().rbegin() != last) return;
  Region region;
  std::map<std::string, int> kinds;
  for (const ChainGrowth& chain : sharing.chains) {
    append(region, chain);
    ++kinds[chain.ops()];
  }
  std::ranges::sort(region.nodes);
  region.kind = several;
  for (const auto& [ops, count] : kinds)
    region.kind += fmt::format("{}{} {}", region.kind == several ? "" : ", ", count, ops);
  regions.push_back(std::move(region));
}

// Returns the region's nodes that `output` depends on, in topological order.
std::vector<NodeId> nodes_of(const Graph& graph, const Region& region, Value output) {
  std::set<NodeId> nodes{output.node};
  for (auto node = region.nodes.rbegin(); node != region.nodes.rend(); ++node)
    if (nodes.contains(*node))
      for (const Value input : graph.record(*node).inputs)
        if (std::ranges::find(region.nodes, input.node) != region.nodes.end()) nodes.insert(input.node);
  return {nodes.begin(), nodes.end()};
}

Step step_of(const NodeRecord& record) {
  Step step{*step_function(record.op->name()), record.types[0].dtype, {}, {}};
  if (step.function != StepFunction::cast && step.function != StepFunction::where)
    std::ranges::copy(op_cast<FunctionOp>(*record.op).options().values, step.options);
  return step;
}

}  // namespace

std::vector<Region> match_chains(const Graph& graph, NodeId last, const Uses& uses) {
  std::vector<Region> regions;
  if (!is_step(graph, last, uses)) return regions;
  add_single(graph, last, uses, regions);
  if (is_only_stored(graph, last, uses)) add_several(graph, last, uses, regions);
  std::ranges::reverse(regions);
  return regions;
}

bool is_chains(const Region& region) {
  return region.kind.starts_with(one) || region.kind.starts_with(several);
}

std::vector<Chain> chains_of(const Graph& graph, const Region& region) {
  std::vector<Chain> chains;
  std::size_t begin = 0;  // index of the chain's first input among the inputs of the region
  for (const Value output : region.outputs) {
    Chain& chain = chains.emplace_back();
    const std::vector<NodeId> nodes = nodes_of(graph, region, output);
    std::map<Value, std::uint8_t> numbers;
    for (const NodeId node : nodes)
      for (const Value input : graph.record(node).inputs) {
        const bool is_inner = std::ranges::find(nodes, input.node) != nodes.end();
        if (is_inner || !numbers.emplace(input, static_cast<std::uint8_t>(chain.operands.size())).second)
          continue;
        chain.operands.push_back({begin++, graph.type(input).shape != graph.type(output).shape});
      }
    for (const NodeId node : nodes) {
      Step step = step_of(graph.record(node));
      const std::vector<Value>& inputs = graph.record(node).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) step.operands[i] = numbers.at(inputs[i]);
      numbers.emplace(Value{node, 0}, static_cast<std::uint8_t>(chain.operands.size() + chain.steps.size()));
      chain.steps.push_back(step);
    }
  }
  return chains;
}

}  // namespace plexaura::cuda
