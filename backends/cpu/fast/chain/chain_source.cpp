#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>

#include "backends/cpu/fast/elementwise/elementwise_ops.h"
#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/padding_eraser.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/physical.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/batch_norm_regions.h"
#include "backends/regions/chain_growth.h"
#include "backends/regions/region_match.h"

namespace plexaura::fast {

namespace {

constexpr std::string_view prefix = "chain ";  // begins the kind of each of these regions
constexpr std::size_t most_ops = 16;

// Values with fewer elements stay in the first cache anyway, so a chain saves nothing.
constexpr std::int64_t least_elements = 4096;

constexpr std::size_t most_inputs = 10;

constexpr double seconds_per_op = 1e-10;  // seconds of an op for one element of a block

constexpr std::size_t longest_block = 1024;      // in elements
constexpr std::size_t bytes_of_buffers = 32768;  // all buffers of a thread; they stay in the first cache
constexpr std::size_t granule = 64;              // bytes of a cache line; elements of a block are a multiple

// An operand of an op of a chain: an input of the region, or a buffer with the result of an earlier op.
struct ChainOperand {
  bool is_input = false;
  std::size_t index = 0;
  std::size_t bytes = 0;  // bytes of an element
};

struct ChainOp {
  Elementwise function;
  std::array<ChainOperand, most_operands> operands;
  std::array<std::int64_t, most_operands> steps;  // 0 for an operand of one element, else 1
  std::size_t buffer = 0;  // buffer of the result; not used by the last op, which writes to the output
};

// An input of one element. It is copied into a whole buffer before the first block.
struct RepeatedInput {
  std::size_t index = 0;
  std::size_t bytes = 0;
  std::size_t buffer = 0;
};

// Assigns buffers to the results of a chain. A buffer is free again after the last op that reads it.
class BufferAssignment {
 public:
  explicit BufferAssignment(const RegionQuery& query) {
    for (const NodeId node : query.region.nodes)
      for (const Value input : query.graph.record(node).inputs) last_reader_[input.node] = node;
  }

  std::size_t take(NodeId node) {
    if (free_.empty()) free_.push_back(count_++);
    const std::size_t buffer = free_.back();
    free_.pop_back();
    return of_node_[node] = buffer;
  }
  // Returns a buffer that release() never frees.
  std::size_t take_for_all_blocks() { return count_++; }
  // Returns the buffer with the result of a node, or null for values from outside the chain.
  const std::size_t* find(NodeId node) const {
    const auto found = of_node_.find(node);
    return found == of_node_.end() ? nullptr : &found->second;
  }
  // Frees the buffers whose last reader is `reader` or an earlier op.
  void release(NodeId reader) {
    std::erase_if(of_node_, [&](const auto& assigned) {
      if (last_reader_.at(assigned.first) > reader) return false;
      free_.push_back(assigned.second);
      return true;
    });
  }
  std::size_t count() const { return count_; }

 private:
  std::map<NodeId, NodeId> last_reader_;
  std::map<NodeId, std::size_t> of_node_;
  std::vector<std::size_t> free_;
  std::size_t count_ = 0;
};

// Computes the ops of a region block by block, so that inner results never leave the first cache. Each op uses the loop
// that it uses outside of a region, so the results have the same bits.
class Chain {
 public:
  explicit Chain(const RegionQuery& query) {
    BufferAssignment buffers(query);
    for (const NodeId node : query.region.nodes) {
      ops_.push_back(op_of(query, node, buffers));
      nanoseconds_ += ops_.back().function.nanoseconds;
      result_bytes_ = size_of(query.graph.type({node, 0}).dtype);
      for (const ChainOperand& operand : ops_.back().operands) widest_ = std::max(widest_, operand.bytes);
      if (node != query.region.nodes.back()) ops_.back().buffer = buffers.take(node);
      buffers.release(node);
    }
    const std::size_t fitting = bytes_of_buffers / (buffers.count() * widest_);
    block_ = static_cast<std::int64_t>(std::min(longest_block, fitting / granule * granule));
  }

  double nanoseconds() const { return nanoseconds_; }

  // Computes the elements from `begin` to `end`.
  void run(const Binding& at, std::int64_t begin, std::int64_t end) const {
    alignas(granule) std::byte buffers[bytes_of_buffers];
    const std::size_t stride = static_cast<std::size_t>(block_) * widest_;
    for (const RepeatedInput& input : repeated_)
      repeat(at.inputs[input.index], input.bytes, buffers + input.buffer * stride,
             std::min(block_, end - begin));
    for (; begin < end; begin += block_) {
      for (const ChainOp& op : ops_) {
        const std::byte* operands[most_operands] = {};
        for (std::size_t i = 0; i < op.function.operands; ++i) {
          const ChainOperand& operand = op.operands[i];
          operands[i] = operand.is_input ? at.inputs[operand.index] +
                                               begin * op.steps[i] * static_cast<std::int64_t>(operand.bytes)
                                         : buffers + operand.index * stride;
        }
        std::byte* result = &op == &ops_.back()
                                ? at.outputs[0] + begin * static_cast<std::int64_t>(result_bytes_)
                                : buffers + op.buffer * stride;
        op.function.inner(operands, op.steps.data(), result, std::min(block_, end - begin));
      }
    }
  }

 private:
  ChainOp op_of(const RegionQuery& query, NodeId node, BufferAssignment& buffers) {
    const auto& inputs = query.graph.record(node).inputs;
    ChainOp op{*elementwise_of(query.graph, node), {}, {}, 0};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorType& type = query.type(inputs[i]);
      ChainOperand& operand = op.operands[i];
      operand.bytes = size_of(type.dtype);
      op.steps[i] = type.shape == query.graph.type({node, 0}).shape ? 1 : 0;
      if (const std::size_t* buffer = buffers.find(inputs[i].node)) {
        operand.index = *buffer;
        continue;
      }
      operand.is_input = true;
      operand.index = static_cast<std::size_t>(std::ranges::find(query.region.inputs, inputs[i]) -
                                               query.region.inputs.begin());
      if (op.steps[i] == 0 && op.function.repeats) {
        repeated_.push_back({operand.index, operand.bytes, buffers.take_for_all_blocks()});
        operand = {false, repeated_.back().buffer, operand.bytes};
        op.steps[i] = 1;
      }
    }
    return op;
  }

  std::vector<ChainOp> ops_;
  std::vector<RepeatedInput> repeated_;
  std::int64_t block_ = 0;  // elements of a block
  std::size_t widest_ = 0;  // bytes of an element of the widest operand
  std::size_t result_bytes_ = 0;
  double nanoseconds_ = 0;
};

std::shared_ptr<const Kernel> make_chain(const RegionQuery& query, const Layout& layout) {
  const TensorType& type = query.type(query.region.outputs[0]);
  return make_kernel([chain = Chain(query), eraser = PaddingEraser(layout, type),
                      count = layout.elements(type.shape)](const Binding& at) {
    parallel_pieces(count, chain.nanoseconds(), granule,
                    [&](std::int64_t begin, std::int64_t end) { chain.run(at, begin, end); });
    eraser.erase(at.outputs[0]);
  });
}

// Returns the layouts of the inputs that have the result's shape, or row-major if none is known.
std::vector<Layout> layouts_to_offer(const RegionQuery& query) {
  const Shape& shape = query.type(query.region.outputs[0]).shape;
  std::vector<Layout> layouts = layouts_like_result(query);
  if (layouts.empty()) layouts.push_back(Layout::row_major(shape.rank()));
  return layouts;
}

Candidate candidate_for(const RegionQuery& query, const Layout& layout) {
  const TensorType& result = query.type(query.region.outputs[0]);
  Candidate candidate = row_major_candidate(query);
  candidate.outputs[0] = layout;
  for (std::size_t i = 0; i < query.region.inputs.size(); ++i) {
    const TensorType& type = query.type(query.region.inputs[i]);
    if (type.shape == result.shape) candidate.inputs[i] = layout;
    // This input has one element, so any layout without padding fits.
    else if (query.given[i] && query.given[i]->blocks().empty())
      candidate.inputs[i] = *query.given[i];
    if (type == result) candidate.in_place.emplace_back(0, i);
  }
  candidate.seconds =
      seconds_of_traffic(query, candidate) + seconds_per_op * static_cast<double>(query.region.nodes.size()) *
                                                 static_cast<double>(layout.elements(result.shape));
  candidate.make = [query, layout] { return make_chain(query, layout); };
  return candidate;
}

Region region_of(const ChainGrowth& chain, Value result) {
  return {std::string(prefix) + chain.ops(),
          {chain.nodes().begin(), chain.nodes().end()},
          chain.inputs(),
          {result}};
}

// Offers regions of elementwise ops whose inner results are read only within the region.
class ChainSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::map<NodeId, bool> known;
    const ChainGrowth::Accepts has_loop = [&](NodeId node) {
      const auto [found, is_new] = known.emplace(node, false);
      if (is_new)
        found->second = is_elementwise(graph, node) && !belongs_to_batch_norm(graph, node, uses) &&
                        elementwise_of(graph, node).has_value();
      return found->second;
    };
    std::vector<Region> regions;
    const Value result{last, 0};
    if (graph.type(result).shape.elements() < least_elements || !has_loop(last)) return regions;
    const ChainGrowth::Accepts accepts = [&](NodeId node) {
      return has_loop(node) && uses.depends_on_feeds(node) == uses.depends_on_feeds(last);
    };
    // If the reader of the result can join the chain, the regions that end at the reader contain the shorter regions that
    // end here. Then only the longest region that ends here is offered.
    const auto& readers = uses.readers(result);
    const bool goes_on = !uses.kept(result) && readers.size() == 1 && has_loop(readers[0]) &&
                         graph.type({readers[0], 0}).shape == graph.type(result).shape;
    ChainGrowth chain(graph, uses, last);
    while (chain.grow(most_ops, most_inputs, accepts)) {
      if (goes_on) regions.clear();
      regions.push_back(region_of(chain, result));
    }
    std::ranges::reverse(regions);
    return regions;
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> candidates;
    if (!query.region.kind.starts_with(prefix)) return candidates;
    for (const Layout& layout : layouts_to_offer(query)) candidates.push_back(candidate_for(query, layout));
    return candidates;
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_chain_source() { return std::make_unique<ChainSource>(); }

}  // namespace plexaura::fast
