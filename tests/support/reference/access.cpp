#include "tests/support/reference/access.h"

namespace plexaura::testing::reference {

std::size_t place_of(const Shape& shape, std::span<const std::int64_t> index) {
  if (static_cast<std::int64_t>(index.size()) != shape.rank())
    throw InternalError("a reference function takes an element by an index of another rank");
  std::int64_t place = 0;
  for (std::int64_t axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t i = index[static_cast<std::size_t>(axis)];
    if (i < 0 || i >= shape[axis]) throw InternalError("a reference function leaves the value");
    place = place * shape[axis] + i;
  }
  return static_cast<std::size_t>(place);
}

double& at(Tensor& value, const Index& index) { return value.as<double>()[place_of(value.shape(), index)]; }
double at(const Tensor& value, const Index& index) {
  return value.as<double>()[place_of(value.shape(), index)];
}

void for_each_index(const Shape& shape, const std::function<void(const Index&)>& body) {
  Index index(static_cast<std::size_t>(shape.rank()), 0);
  for (std::int64_t left = shape.elements(); left > 0; --left) {
    body(index);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < shape.extents()[axis]) break;
      index[axis] = 0;
    }
  }
}

Index before_broadcasting(const Shape& operand, const Index& index) {
  const std::size_t added = index.size() - static_cast<std::size_t>(operand.rank());
  Index own;
  for (std::size_t axis = added; axis < index.size(); ++axis)
    own.push_back(operand.extents()[axis - added] == 1 ? 0 : index[axis]);
  return own;
}

Tensor zeros(Shape shape) { return Tensor(TensorType{DType::float64, std::move(shape)}); }

}  // namespace plexaura::testing::reference
