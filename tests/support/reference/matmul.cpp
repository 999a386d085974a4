#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

Shape batch_of(const Shape& shape) {
  return Shape(std::vector<std::int64_t>(shape.begin(), shape.end() - 2));
}

// Returns the element (row, column) of the matrix at a batch index.
double element(const Tensor& matrices, bool transposed, const Index& batch, std::int64_t row,
               std::int64_t column) {
  Index index = before_broadcasting(batch_of(matrices.shape()), batch);
  index.push_back(transposed ? column : row);
  index.push_back(transposed ? row : column);
  return at(matrices, index);
}

}  // namespace

// y[..., i, j] = sum over k of a[..., i, k] b[..., k, j]
Tensor matmul(const Tensor& a, const Tensor& b, const MatMulOptions& options) {
  const std::int64_t last = a.shape().rank() - 1;
  const std::int64_t rows = a.shape()[options.transpose_a ? last : last - 1];
  const std::int64_t inner = a.shape()[options.transpose_a ? last - 1 : last];
  const std::int64_t columns = b.shape()[b.shape().rank() - (options.transpose_b ? 2 : 1)];
  std::vector<std::int64_t> extents = broadcast(batch_of(a.shape()), batch_of(b.shape())).extents();
  extents.insert(extents.end(), {rows, columns});
  Tensor y = zeros(Shape(extents));
  for_each_index(y.shape(), [&](const Index& index) {
    const Index batch(index.begin(), index.end() - 2);
    const std::int64_t i = index[index.size() - 2];
    const std::int64_t j = index.back();
    for (std::int64_t k = 0; k < inner; ++k)
      at(y, index) +=
          element(a, options.transpose_a, batch, i, k) * element(b, options.transpose_b, batch, k, j);
  });
  return y;
}

}  // namespace plexaura::testing::reference
