#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "backends/cpu/fast/elementwise/cast_loops.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/region_match.h"
#include "core/host/costs.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_cast = 0.3;    // time of a cast of one element
constexpr std::int64_t elements_per_line = 16;  // float32 in a cache line

TensorType widened(TensorType type) {
  if (has_16_bits(type.dtype)) type.dtype = DType::float32;
  return type;
}

// A copy of a query's region in a graph of its own, in which float32 replaces the dtypes of 16 bits.
class WideRegion {
 public:
  explicit WideRegion(const RegionQuery& query) : graph_(query.graph.mode()) {
    region_.kind = query.region.kind;
    for (const Value input : query.region.inputs) region_.inputs.push_back(copy_of_input(query, input));
    for (const NodeId node : query.region.nodes) append(query, node);
    for (const Value output : query.region.outputs)
      region_.outputs.push_back(copies_.at(key(output)).value());
  }

  RegionQuery query(const RegionQuery& narrow) const {
    return {graph_, region_, narrow.given, narrow.wanted};
  }

 private:
  using Key = std::pair<NodeId, std::size_t>;
  static Key key(Value value) { return {value.node, value.output}; }

  Value copy_of_input(const RegionQuery& query, Value input) {
    const auto found = copies_.find(key(input));
    if (found != copies_.end()) return found->second.value();
    const Node copy = graph_.input(std::to_string(copies_.size()), widened(query.type(input)));
    copies_.emplace(key(input), copy);
    return copy.value();
  }

  void append(const RegionQuery& query, NodeId node) {
    const NodeRecord& record = query.graph.record(node);
    std::vector<Node> inputs;
    for (const Value input : record.inputs) inputs.push_back(copies_.at(key(input)));
    const std::vector<Node> outputs = graph_.append(record.op, inputs, Graph::Where::current());
    region_.nodes.push_back(outputs.front().value().node);
    for (std::size_t i = 0; i < outputs.size(); ++i) copies_.emplace(Key{node, i}, outputs[i]);
  }

  Graph graph_;
  Region region_;
  std::map<Key, Node> copies_;
};

// An input or output of 16 bits, and its place in the workspace as float32.
struct WideOperand {
  std::size_t index;      // index among the inputs or the outputs of the region
  DType dtype;            // bfloat16 or float16
  std::int64_t elements;  // padding included
  std::size_t offset;     // bytes from the start of the workspace
};

struct WideOperands {
  std::vector<WideOperand> inputs;
  std::vector<WideOperand> outputs;
  std::size_t bytes = 0;  // bytes of the workspace that holds all operands
};

std::vector<WideOperand> wide_operands(const RegionQuery& query, const std::vector<Value>& values,
                                       const std::vector<Layout>& layouts, std::size_t& bytes) {
  std::vector<WideOperand> operands;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const TensorType& type = query.type(values[i]);
    if (!has_16_bits(type.dtype)) continue;
    const std::int64_t elements = layouts[i].elements(type.shape);
    operands.push_back({i, type.dtype, elements, bytes});
    const std::int64_t lines = (elements + elements_per_line - 1) / elements_per_line;
    bytes += static_cast<std::size_t>(lines * elements_per_line) * sizeof(float);
  }
  return operands;
}

WideOperands wide_operands(const RegionQuery& query, const Candidate& candidate) {
  WideOperands operands;
  operands.inputs = wide_operands(query, query.region.inputs, candidate.inputs, operands.bytes);
  operands.outputs = wide_operands(query, query.region.outputs, candidate.outputs, operands.bytes);
  return operands;
}

// A conversion of an operand, before or after the kernel of float32 runs.
struct BoundCast {
  DType from;
  DType to;
  const std::byte* source;
  std::byte* target;
  std::int64_t elements;

  void run() const {
    const CastLoop loop = find_cast(from, to);
    const auto bytes_of = [](DType dtype, std::int64_t count) {
      return count * static_cast<std::int64_t>(size_of(dtype));
    };
    parallel_pieces(elements, nanoseconds_per_cast, elements_per_line,
                    [&](std::int64_t begin, std::int64_t end) {
                      loop(source + bytes_of(from, begin), target + bytes_of(to, begin), end - begin);
                    });
  }
};

class WidenedLaunch final : public Launch {
 public:
  WidenedLaunch(std::vector<BoundCast> before, std::unique_ptr<Launch> launch, std::vector<BoundCast> after)
      : before_(std::move(before)), launch_(std::move(launch)), after_(std::move(after)) {}

  void run() override {
    for (const BoundCast& cast : before_) cast.run();
    launch_->run();
    for (const BoundCast& cast : after_) cast.run();
  }

 private:
  std::vector<BoundCast> before_;
  std::unique_ptr<Launch> launch_;
  std::vector<BoundCast> after_;
};

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(WideOperands operands, std::shared_ptr<const Kernel> kernel)
      : operands_(std::move(operands)), kernel_(std::move(kernel)) {}

  std::size_t workspace() const override { return operands_.bytes + kernel_->workspace(); }

  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    Binding wide = binding;
    wide.workspace = binding.workspace + operands_.bytes;
    std::vector<BoundCast> before;
    for (const WideOperand& operand : operands_.inputs) {
      Address& address = wide.inputs[operand.index];
      if (address == nullptr) continue;
      before.push_back(
          {operand.dtype, DType::float32, address, binding.workspace + operand.offset, operand.elements});
      address = before.back().target;
    }
    std::vector<BoundCast> after;
    for (const WideOperand& operand : operands_.outputs) {
      Address& address = wide.outputs[operand.index];
      if (address == nullptr) continue;
      after.push_back(
          {DType::float32, operand.dtype, binding.workspace + operand.offset, address, operand.elements});
      address = binding.workspace + operand.offset;
    }
    return std::make_unique<WidenedLaunch>(std::move(before), kernel_->bind(wide), std::move(after));
  }

 private:
  WideOperands operands_;
  std::shared_ptr<const Kernel> kernel_;
};

double seconds_of_casts(const WideOperands& operands) {
  double bytes = 0;
  for (const auto* side : {&operands.inputs, &operands.outputs})
    for (const WideOperand& operand : *side)
      bytes += static_cast<double>(operand.elements) * (sizeof(float) + sizeof(bfloat16));
  return bytes / costs::bytes_of_memory;
}

Candidate widened(const RegionQuery& query, std::shared_ptr<const WideRegion> wide, Candidate candidate) {
  WideOperands operands = wide_operands(query, candidate);
  candidate.implementation += " in float32";
  candidate.in_place.clear();  // results lie in the workspace until the kernel ends
  candidate.seconds += seconds_of_casts(operands);
  candidate.make = [wide = std::move(wide), make = std::move(candidate.make),
                    operands = std::move(operands)] {
    return std::make_shared<const WidenedKernel>(operands, make());
  };
  return candidate;
}

class WidenedSource final : public KernelSource {
 public:
  explicit WidenedSource(std::unique_ptr<const KernelSource> source) : source_(std::move(source)) {}

  Denormals denormals() const override { return source_->denormals(); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    const auto is_narrow = [&](Value input) { return has_16_bits(query.type(input).dtype); };
    if (!source_->knows(query.region.kind) || std::ranges::none_of(query.region.inputs, is_narrow)) return {};
    const auto wide = std::make_shared<const WideRegion>(query);
    std::vector<Candidate> candidates;
    for (Candidate& candidate : source_->propose(wide->query(query)))
      candidates.push_back(widened(query, wide, std::move(candidate)));
    return candidates;
  }

 private:
  std::unique_ptr<const KernelSource> source_;
};

}  // namespace

std::unique_ptr<const KernelSource> make_widened_source(std::unique_ptr<const KernelSource> source) {
  return std::make_unique<WidenedSource>(std::move(source));
}

}  // namespace plexaura::fast
