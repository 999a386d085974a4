#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/slopes/slope_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/graph_pattern.h"
#include "backends/regions/region_match.h"
#include "core/autodiff/gradients.h"
#include "core/ops/activations.h"
#include "core/ops/unary.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_element = 1;

struct SlopeOp {
  std::string_view kind;  // kind of its regions
  Node (*op)(Operand x);
  SlopeLoop<float> floats;
  SlopeLoop<double> doubles;  // null: single ops are faster
};

// erf of doubles comes from the standard library, so a loop over gelu's gradient would compute one element at a time.
constexpr std::array slope_ops{
    SlopeOp{"gelu grad", [](Operand x) { return gelu(x); }, gelu_grad_loop, nullptr},
    SlopeOp{"gelu_tanh grad", [](Operand x) { return gelu(x, {.tanh = true}); }, gelu_tanh_grad_loop,
            gelu_tanh_grad_loop},
    SlopeOp{"silu grad", silu, silu_grad_loop, silu_grad_loop},
    SlopeOp{"hard_swish grad", hard_swish, hard_swish_grad_loop, hard_swish_grad_loop}};

bool has_loop(const SlopeOp& op, DType dtype) {
  return dtype == DType::float32 || (dtype == DType::float64 && op.doubles != nullptr);
}

// The gradient of an op as the op's vjp() appends it to a graph.
struct SlopePattern {
  SlopePattern(const SlopeOp& of, const TensorType& type)
      : x(graph.input("x", type)), grad(graph.input("grad", type)) {
    result = vjp(std::vector{of.op(x)}, std::vector{grad}, std::vector{x})[0];
  }

  Graph graph;
  Node x, grad, result;
};

// Compares the names of the ops of a pattern, down to some depth, with those of a graph. Rejects most nodes quickly.
bool is_alike(const Graph& pattern, Value wanted, const Graph& graph, Value value, int depth) {
  const NodeRecord& record = pattern.record(wanted.node);
  if (record.inputs.empty()) return true;
  const NodeRecord& found = graph.record(value.node);
  if (found.op->name() != record.op->name() || found.inputs.size() != record.inputs.size()) return false;
  for (std::size_t i = 0; depth > 0 && i < record.inputs.size(); ++i)
    if (!is_alike(pattern, record.inputs[i], graph, found.inputs[i], depth - 1)) return false;
  return true;
}

const SlopeOp* find_slope(std::string_view kind) {
  const auto* found = std::ranges::find(slope_ops, kind, &SlopeOp::kind);
  return found == slope_ops.end() ? nullptr : found;
}

template <class T>
std::shared_ptr<const Kernel> make_slope(SlopeLoop<T> loop, std::int64_t count) {
  return make_kernel([loop, count](const Binding& at) {
    parallel_pieces(count, nanoseconds_per_element, 64, [&](std::int64_t begin, std::int64_t end) {
      loop(elements<T>(at.inputs[0]) + begin, elements<T>(at.inputs[1]) + begin,
           elements<T>(at.outputs[0]) + begin, end - begin);
    });
  });
}

// Regions of the gradients of elementwise ops, each of which takes several ops in a graph. Their inputs are x, the
// gradient of the result, and the constants that the loop contains. Zeros of the padding stay zero, since grad is a
// factor.
class SlopeSource final : public KernelSource {
 public:
  SlopeSource() {
    for (const SlopeOp& op : slope_ops)
      scalar_patterns_.push_back(std::make_unique<SlopePattern>(op, TensorType{DType::float32, {}}));
  }

  std::vector<Region> match(const Graph& graph, NodeId last, const Uses&) const override {
    const Value result{last, 0};
    for (std::size_t i = 0; i < slope_ops.size(); ++i) {
      constexpr int depth = 4;
      if (!has_loop(slope_ops[i], graph.type(result).dtype) ||
          !is_alike(scalar_patterns_[i]->graph, scalar_patterns_[i]->result.value(), graph, result, depth))
        continue;
      const SlopePattern pattern(slope_ops[i], graph.type(result));
      PatternMatch match(pattern.graph, {}, graph);
      if (!match.match(pattern.result, result)) continue;
      Region region{
          std::string(slope_ops[i].kind), match.nodes(), {match[pattern.x], match[pattern.grad]}, {result}};
      for (const Value constant : match.constants()) region.inputs.push_back(constant);
      return {std::move(region)};
    }
    return {};
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const SlopeOp* slope = find_slope(query.region.kind);
    if (slope == nullptr || !has_elements(query.graph, query.region.outputs[0])) return {};
    std::vector<Candidate> candidates;
    const Candidate plain = row_major_candidate(query);
    const TensorType& type = query.type(query.region.outputs[0]);
    std::vector<Layout> offered;
    for (const auto& given : {query.given[0], query.given[1]}) {
      const Layout layout = given.value_or(plain.outputs[0]);
      if (std::ranges::find(offered, layout) != offered.end()) continue;
      offered.push_back(layout);
      Candidate candidate = plain;
      candidate.inputs[0] = candidate.inputs[1] = candidate.outputs[0] = layout;
      candidate.in_place = {{0, 0}, {0, 1}};
      candidate.seconds = seconds_of_traffic(query, candidate);
      candidate.make = [slope, dtype = type.dtype, count = layout.elements(type.shape)] {
        return dtype == DType::float64 ? make_slope(slope->doubles, count) : make_slope(slope->floats, count);
      };
      candidates.push_back(std::move(candidate));
    }
    return candidates;
  }

 private:
  std::vector<std::unique_ptr<SlopePattern>> scalar_patterns_;  // one pattern for each of slope_ops
};

}  // namespace

std::unique_ptr<const KernelSource> make_slope_source() { return std::make_unique<SlopeSource>(); }

}  // namespace plexaura::fast
