#include <algorithm>

#include "backends/cpu/costs.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/onednn/sources.h"
#include "backends/cpu/region_match.h"
#include "core/ops/matmul.h"

namespace plexaura::onednn {

namespace {

using Space = Argument::Space;

constexpr auto with_bias = "matmul+bias";

// An operand as matrices [..., rows, columns], with as many axes as the result; a transposed one is read
// through its strides.
memory::desc operand_desc(const Shape& shape, bool transpose, std::int64_t rank) {
  std::vector<std::int64_t> extents = shape.extents();
  std::vector<std::int64_t> strides = shape.strides();
  if (transpose) {
    std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  const auto missing = static_cast<std::size_t>(rank - shape.rank());
  extents.insert(extents.begin(), missing, 1);
  strides.insert(strides.begin(), missing, shape.elements());
  return {extents, memory::data_type::f32, strides};
}

// [..., M, K] as one matrix of many rows.
Shape as_one_matrix(const Shape& shape) {
  const std::int64_t columns = shape[shape.rank() - 1];
  return {shape.elements() / columns, columns};
}

MatMulDescs descs_of(const RegionQuery& query) {
  const Region& region = query.region;
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  Shape src = query.type(region.inputs[0]).shape;
  const Shape& weights = query.type(region.inputs[1]).shape;
  Shape dst = query.type(region.outputs[0]).shape;
  if (weights.rank() == 2 && src.rank() > 2 && !options.transpose_a) {
    src = as_one_matrix(src);
    dst = as_one_matrix(dst);
  }
  MatMulDescs descs{operand_desc(src, options.transpose_a, dst.rank()),
                    operand_desc(weights, options.transpose_b, dst.rank()), std::nullopt,
                    row_major(dst.extents())};
  if (region.nodes.size() > 1) {
    std::vector<std::int64_t> bias(static_cast<std::size_t>(dst.rank()), 1);
    bias.back() = dst[dst.rank() - 1];
    descs.bias = row_major(bias);
  }
  return descs;
}

dnnl::matmul::primitive_desc describe(const RegionQuery& query) {
  return describe_matmul(descs_of(query), attributes_with({}));
}

double seconds_of(const RegionQuery& query) {
  const Shape& src = query.type(query.region.inputs[0]).shape;
  const auto inner = src[src.rank() - (op_cast<MatMul>(query.op()).options().transpose_a ? 2 : 1)];
  const auto outputs = query.type(query.region.outputs[0]).shape.elements();
  return costs::seconds_of_launch +
         2 * static_cast<double>(inner) * static_cast<double>(outputs) / costs::operations;
}

// Whether a value is one row that is added to each row of the product.
bool is_bias(const Shape& value, const Shape& product) {
  return value.rank() > 0 && value.rank() <= product.rank() && value[value.rank() - 1] == value.elements() &&
         value.elements() == product[product.rank() - 1];
}

std::shared_ptr<const Kernel> make_matmul(const RegionQuery& query) {
  const auto primitive = describe(query);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, primitive.src_desc(), Space::input, 0},
                                  {DNNL_ARG_WEIGHTS, primitive.weights_desc(), Space::input, 1},
                                  {DNNL_ARG_DST, primitive.dst_desc(), Space::output, 0},
                                  scratchpad_of(primitive)};
  if (query.region.nodes.size() > 1)
    arguments.push_back({DNNL_ARG_BIAS, *descs_of(query).bias, Space::input, 2});
  return std::make_shared<PrimitiveKernel>(dnnl::matmul(primitive), std::move(arguments));
}

class MatMulSource final : public KernelSource {
 public:
  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    if (!is_float32(graph, {last, 0}) || !has_elements(graph, {last, 0})) return {};
    return is_op(graph, last, "add") ? match_add(graph, last, uses) : std::vector<Region>{};
  }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!is_matmul(query) || !is_dense_float32(query)) return {};
    Candidate candidate;
    try {
      candidate.implementation = std::string("onednn ") + describe(query).impl_info_str();
      if (is_reference(candidate.implementation)) return {};
    } catch (const dnnl::error&) {
      return {};
    }
    for (const Value input : query.region.inputs)
      candidate.inputs.push_back(Layout::row_major(query.type(input).shape.rank()));
    candidate.outputs = {Layout::row_major(query.type(query.region.outputs[0]).shape.rank())};
    candidate.seconds = seconds_of(query);
    candidate.make = [query] { return make_matmul(query); };
    return {std::move(candidate)};
  }

 private:
  static bool is_matmul(const RegionQuery& query) {
    const std::string& kind = query.region.kind;
    return kind == "matmul" || kind == with_bias;
  }

  static std::vector<Region> match_add(const Graph& graph, NodeId add, const Uses& uses) {
    const std::vector<Value>& operands = graph.record(add).inputs;
    for (std::size_t side = 0; side < 2; ++side) {
      const Value product = operands[side];
      const Value bias = operands[1 - side];
      if (!is_op(graph, product.node, "matmul") || !uses.only_read_by(product, add) || bias == product)
        continue;
      if (!is_bias(graph.type(bias).shape, graph.type(product).shape)) continue;
      std::vector<Value> inputs = graph.record(product.node).inputs;
      inputs.push_back(bias);
      return {{with_bias, {product.node, add}, std::move(inputs), {{add, 0}}}};
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_matmul_source() { return std::make_unique<MatMulSource>(); }

}  // namespace plexaura::onednn
