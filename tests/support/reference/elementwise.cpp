#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

// Returns f(elements of the operands) for each index of their common shape.
template <class F>
std::vector<Tensor> map(std::span<const Tensor> operands, const F& f) {
  Shape shape;
  for (const Tensor& operand : operands) shape = broadcast(shape, operand.shape());
  Tensor y = zeros(shape);
  for_each_index(shape, [&](const Index& index) {
    at(y, index) = f([&](std::size_t operand) {
      return at(operands[operand], before_broadcasting(operands[operand].shape(), index));
    });
  });
  return {y};
}

}  // namespace

Expected elementwise(double (*f)(double)) {
  return [=](auto x) { return map(x, [=](const auto& element) { return f(element(0)); }); };
}

Expected elementwise(double (*f)(double, double)) {
  return [=](auto x) { return map(x, [=](const auto& element) { return f(element(0), element(1)); }); };
}

Expected elementwise(double (*f)(double, double, double)) {
  return [=](auto x) {
    return map(x, [=](const auto& element) { return f(element(0), element(1), element(2)); });
  };
}

}  // namespace plexaura::testing::reference
