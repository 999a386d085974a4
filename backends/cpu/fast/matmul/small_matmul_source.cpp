#include <optional>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/matmul/small_matmul_loops.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/matmul_regions.h"
#include "core/host/costs.h"
#include "core/ops/matmul.h"

namespace plexaura::fast {

namespace {

// Returns the sizes of a product. Returns nothing if a factor is a batch of matrices, or if the product is too large.
std::optional<MatrixProduct> small_product(const RegionQuery& query) {
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  const auto& [a, b, product] = matmul_shapes(query);
  if (a.rank() != 2 || b.rank() != 2) return std::nullopt;
  const MatrixProduct small{product[0], a[options.transpose_a ? 0 : 1], product[1], options.transpose_a,
                            options.transpose_b};
  if (small.rows * small.inner * small.columns > most_small_multiplications) return std::nullopt;
  return small;
}

double seconds_of(const MatrixProduct& product) {
  const std::int64_t panels = (product.columns + panel_columns - 1) / panel_columns;
  const auto packed = static_cast<double>(panels * panel_columns * product.inner);
  const double packing = packed / (product.transpose_b ? costs::copied_elements : 4 * costs::copied_elements);
  return costs::seconds_of_launch + packing +
         2 * packed * static_cast<double>(product.rows) / costs::operations_of_small_products;
}

std::shared_ptr<const Kernel> make_for(const MatrixProduct& product) {
  const auto workspace = static_cast<std::size_t>(product.inner * panel_columns) * sizeof(float);
  return make_kernel(
      [product](const Binding& at) {
        const float* bias = at.inputs.size() > 2 ? floats(at.inputs[2]) : nullptr;
        multiply_small(product, floats(at.inputs[0]), floats(at.inputs[1]), bias, floats(at.workspace),
                       floats(at.outputs[0]));
      },
      workspace);
}

// Multiplies two small matrices of float32, for which calling a library takes longer than the product itself. Also adds a
// bias.
class SmallMatMulSource final : public KernelSource {
 public:
  Denormals denormals() const override { return Denormals::flushed; }

  std::vector<Region> match(const Graph& graph, NodeId last, const Uses& uses) const override {
    if (!is_op(graph, last, "add") || !is_float32(graph, {last, 0}) || !has_elements(graph, {last, 0}))
      return {};
    return match_matmul_with_bias(graph, last, uses);
  }

  bool knows(const std::string& kind) const override { return is_matmul_kind(kind); }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (!is_matmul(query) || !is_dense_float32(query)) return {};
    const std::optional<MatrixProduct> product = small_product(query);
    if (!product) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.seconds = seconds_of(*product);
    candidate.make = [product = *product] { return make_for(product); };
    return {std::move(candidate)};
  }
};

}  // namespace

std::unique_ptr<const KernelSource> make_small_matmul_source() {
  return std::make_unique<SmallMatMulSource>();
}

}  // namespace plexaura::fast
