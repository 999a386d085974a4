#include <algorithm>

#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/onednn/sources.h"
#include "backends/regions/matmul_regions.h"
#include "backends/regions/region_match.h"
#include "core/host/costs.h"
#include "core/ops/matmul.h"

namespace plexaura::onednn {

namespace {

using Space = Argument::Space;

// Describes an operand as matrices [..., rows, columns] with `rank` axes, as many as the result has. The
// strides express a transposition.
memory::desc operand_desc(const Shape& shape, bool transpose, std::int64_t rank, DType dtype) {
  std::vector<std::int64_t> extents = shape.extents();
  std::vector<std::int64_t> strides = shape.strides();
  if (transpose) {
    std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
    std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  }
  const auto missing = static_cast<std::size_t>(rank - shape.rank());
  extents.insert(extents.begin(), missing, 1);
  strides.insert(strides.begin(), missing, shape.elements());
  return strided(extents, strides, dtype);
}

DType dtype_of_product(const RegionQuery& query) { return query.type(query.region.outputs[0]).dtype; }

MatMulDescs descs_of(const RegionQuery& query) {
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  const auto& [a, b, product] = matmul_shapes(query);
  const DType dtype = dtype_of_product(query);
  MatMulDescs descs{operand_desc(a, options.transpose_a, product.rank(), dtype),
                    operand_desc(b, options.transpose_b, product.rank(), dtype), std::nullopt,
                    row_major(product.extents(), dtype)};
  if (query.region.kind == matmul_with_bias) {
    std::vector<std::int64_t> bias(static_cast<std::size_t>(product.rank()), 1);
    bias.back() = product[product.rank() - 1];
    descs.bias = row_major(bias, dtype);
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
  return costs::seconds_of_launch + costs::seconds_of_library_call +
         2 * static_cast<double>(inner) * static_cast<double>(outputs) / costs::operations;
}

std::shared_ptr<const Kernel> make_matmul(const RegionQuery& query) {
  const auto primitive = describe(query);
  std::vector<Argument> arguments{{DNNL_ARG_SRC, primitive.src_desc(), Space::input, 0},
                                  {DNNL_ARG_WEIGHTS, primitive.weights_desc(), Space::input, 1},
                                  {DNNL_ARG_DST, primitive.dst_desc(), Space::output, 0},
                                  scratchpad_of(primitive)};
  if (query.region.kind == matmul_with_bias)
    arguments.push_back({DNNL_ARG_BIAS, *descs_of(query).bias, Space::input, 2});
  return std::make_shared<PrimitiveKernel>(dnnl::matmul(primitive), std::move(arguments));
}

class MatMulSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  bool knows(const std::string& kind) const override { return is_matmul_kind(kind); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!is_matmul(query) || !multiplies(dtype_of_product(query)) ||
        !is_dense(query, dtype_of_product(query)))
      return {};
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
};

}  // namespace

std::unique_ptr<const KernelSource> make_matmul_source() { return std::make_unique<MatMulSource>(); }

}  // namespace plexaura::onednn
