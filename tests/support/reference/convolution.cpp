#include "tests/support/reference/convolution.h"

#include "tests/support/reference/access.h"

namespace plexaura::testing::reference {

namespace {

// Calls term(element of x, element of the weights, element of y) for every product that a convolution adds up: in
// one dimension y[n, o, i] += x[n, c, i stride - padding + a dilation] weights[o, c, a], where that lies in x and c is
// a channel of o's group.
template <class X, class W, class Y, class Term>
void for_each_product(X& x, W& weights, Y& y, const Convolution& of, const Term& term) {
  const std::int64_t channels = weights.shape()[1];
  const std::int64_t outputs = weights.shape()[0] / of.groups;
  for_each_index(y.shape(), [&](const Index& place) {
    for_each_index(weights.shape(), [&](const Index& tap) {
      if (tap[0] != place[1]) return;
      Index seen{place[0], place[1] / outputs * channels + tap[1]};
      for (std::size_t axis = 2; axis < place.size(); ++axis) {
        const std::int64_t position =
            place[axis] * of.stride[axis - 2] - of.padding[axis - 2] + tap[axis] * of.dilation[axis - 2];
        if (position < 0 || position >= x.shape()[static_cast<std::int64_t>(axis)]) return;
        seen.push_back(position);
      }
      term(at(x, seen), at(weights, tap), at(y, place));
    });
  });
}

}  // namespace

Tensor convolve(const Tensor& x, const Tensor& weights, const Convolution& of) {
  Index extents{x.shape()[0], weights.shape()[0]};
  for (std::size_t i = 0; i < of.stride.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i) + 2;
    const std::int64_t room = x.shape()[axis] + of.padding[i] + of.padding_end[i];
    extents.push_back((room - of.dilation[i] * (weights.shape()[axis] - 1) - 1) / of.stride[i] + 1);
  }
  Tensor y = zeros(Shape(extents));
  for_each_product(x, weights, y, of,
                   [](double of_x, double weight, double& of_y) { of_y += of_x * weight; });
  return y;
}

// The sum over y of y[...] grad_out[...] is linear in x and in the weights. The gradients are its
// coefficients.
Tensor convolution_input_grad(const Tensor& weights, const Tensor& grad_out, const Index& input,
                              const Convolution& of) {
  Index extents{grad_out.shape()[0], weights.shape()[1] * of.groups};
  extents.insert(extents.end(), input.begin(), input.end());
  Tensor x = zeros(Shape(extents));
  for_each_product(x, weights, grad_out, of,
                   [](double& of_x, double weight, double grad) { of_x += weight * grad; });
  return x;
}

Tensor convolution_weight_grad(const Tensor& x, const Tensor& grad_out, const Index& kernel,
                               const Convolution& of) {
  Index extents{grad_out.shape()[1], x.shape()[1] / of.groups};
  extents.insert(extents.end(), kernel.begin(), kernel.end());
  Tensor weights = zeros(Shape(extents));
  for_each_product(x, weights, grad_out, of,
                   [](double of_x, double& weight, double grad) { weight += of_x * grad; });
  return weights;
}

Tensor add_bias(const Tensor& y, const Tensor& bias) {
  Tensor sum = y;
  for_each_index(y.shape(), [&](const Index& index) { at(sum, index) += at(bias, index[1]); });
  return sum;
}

}  // namespace plexaura::testing::reference
