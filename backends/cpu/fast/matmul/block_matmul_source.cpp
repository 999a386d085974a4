#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/fast/function_kernel.h"
#include "backends/cpu/fast/matmul/block_matmul_loops.h"
#include "backends/cpu/fast/matmul/small_matmul_loops.h"
#include "backends/cpu/fast/parallel.h"
#include "backends/cpu/fast/sources.h"
#include "backends/regions/matmul_regions.h"
#include "core/loops/loops.h"
#include "core/ops/matmul.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_multiplication = 0.05;

// Products of many pairs of matrices, whose first elements have these offsets.
struct BlockProducts {
  BlockProduct of_pair;
  std::vector<std::int64_t> offsets_a;
  std::vector<std::int64_t> offsets_b;

  std::int64_t multiplications_of_pair() const { return of_pair.rows * of_pair.inner * of_pair.columns; }
};

// Returns the offset in the operand of each matrix of the product; the axes before the last two are broadcast.
std::vector<std::int64_t> offsets_of(const Shape& operand, const Shape& product) {
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t axis = 0; axis < product.rank() - 2; ++axis) {
    const std::int64_t stride = portable::broadcast_stride(operand, product, axis);
    std::vector<std::int64_t> longer;
    for (const std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < product[axis]; ++i) longer.push_back(offset + i * stride);
    offsets = std::move(longer);
  }
  return offsets;
}

BlockProducts block_products(const RegionQuery& query) {
  const MatMulOptions& options = op_cast<MatMul>(query.op()).options();
  const auto& [a, b, product] = matmul_shapes(query);
  const std::int64_t rank = product.rank();
  const std::int64_t last_of_a = a[a.rank() - 1];
  const std::int64_t last_of_b = b[b.rank() - 1];
  const BlockProduct of_pair{.rows = product[rank - 2],
                             .inner = options.transpose_a ? a[a.rank() - 2] : last_of_a,
                             .columns = product[rank - 1],
                             .a_row_step = options.transpose_a ? 1 : last_of_a,
                             .a_inner_step = options.transpose_a ? last_of_a : 1,
                             .b_inner_step = options.transpose_b ? 1 : last_of_b,
                             .b_column_step = options.transpose_b ? last_of_b : 1};
  return {of_pair, offsets_of(a, product), offsets_of(b, product)};
}

template <class T>
void multiply_all(const BlockProducts& products, const T* a, const T* b, T* y) {
  const BlockProduct& pair = products.of_pair;
  const std::int64_t down = (pair.rows + most_block_rows - 1) / most_block_rows;
  const std::int64_t across = (pair.columns + most_block_columns - 1) / most_block_columns;
  const std::int64_t multiplications =
      std::min(pair.rows, most_block_rows) * std::min(pair.columns, most_block_columns) * pair.inner;
  parallel_pieces(std::ssize(products.offsets_a) * down * across,
                  nanoseconds_per_multiplication * static_cast<double>(multiplications),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::unique_ptr<T[]> rows;
                    if (packs_rows(pair, std::min(pair.columns, most_block_columns)))
                      rows = std::make_unique_for_overwrite<T[]>(most_block_rows * block_depth);
                    for (std::int64_t index = begin; index < end; ++index) {
                      const std::int64_t matrix = index / (down * across);
                      const std::int64_t row = index / across % down * most_block_rows;
                      const std::int64_t column = index % across * most_block_columns;
                      const ResultBlock block{row, std::min(most_block_rows, pair.rows - row), column,
                                              std::min(most_block_columns, pair.columns - column)};
                      const auto place = static_cast<std::size_t>(matrix);
                      multiply_block(pair, block, a + products.offsets_a[place],
                                     b + products.offsets_b[place], y + matrix * pair.rows * pair.columns,
                                     rows.get());
                    }
                  });
}

template <class T>
std::shared_ptr<const Kernel> make_for(BlockProducts products) {
  return make_kernel([products = std::move(products)](const Binding& at) {
    multiply_all(products, elements<T>(at.inputs[0]), elements<T>(at.inputs[1]), elements<T>(at.outputs[0]));
  });
}

// True for products that make_small_matmul_source() computes, which takes matrices without batch axes.
bool is_left_to_small_source(const RegionQuery& query, const BlockProducts& products) {
  const auto& [a, b, product] = matmul_shapes(query);
  return a.rank() == 2 && b.rank() == 2 && products.multiplications_of_pair() <= most_small_multiplications;
}

class BlockMatMulSource final : public KernelSource {
 public:
  explicit BlockMatMulSource(DType dtype) : dtype_(dtype) {}

  bool knows(const std::string& kind) const override { return kind == "matmul"; }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.kind != "matmul" || !is_dense(query, dtype_)) return {};
    BlockProducts products = block_products(query);
    if (dtype_ == DType::float32 && is_left_to_small_source(query, products)) return {};
    Candidate candidate = row_major_candidate(query);
    candidate.make = [products = std::move(products), dtype = dtype_] {
      return dtype == DType::float64 ? make_for<double>(products) : make_for<float>(products);
    };
    return {std::move(candidate)};
  }

 private:
  DType dtype_;
};

}  // namespace

std::unique_ptr<const KernelSource> make_block_matmul_source(DType dtype) {
  return std::make_unique<BlockMatMulSource>(dtype);
}

}  // namespace plexaura::fast
