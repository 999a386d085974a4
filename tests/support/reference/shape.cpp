#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  Tensor y = zeros(shape);
  for_each_index(shape,
                 [&](const Index& index) { at(y, index) = at(x, before_broadcasting(x.shape(), index)); });
  return y;
}

// y[i[axes[0]], i[axes[1]], ...] = x[i]
Tensor permute(const Tensor& x, const std::vector<std::int64_t>& axes) {
  const auto permuted = [&](const Index& index) {
    Index to;
    for (const std::int64_t axis : axes)
      to.push_back(index[static_cast<std::size_t>(axis < 0 ? axis + x.shape().rank() : axis)]);
    return to;
  };
  Tensor y = zeros(Shape(permuted(x.shape().extents())));
  for_each_index(x.shape(), [&](const Index& index) { at(y, permuted(index)) = at(x, index); });
  return y;
}

}  // namespace plexaura::testing::reference
