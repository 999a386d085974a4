#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

// Calls term(element of x, element of the weights, element of y) for every product that a convolution adds
// up: y[n, o, i, j] += x[n, c, i stride - padding + a dilation, ...] weights[o, c, a, b], where that lies in
// x and c is a channel of o's group.
template <class X, class W, class Y, class Term>
void for_each_product(X& x, W& weights, Y& y, const Conv2dOptions& of, const Term& term) {
  const std::int64_t channels = weights.shape()[1];
  const std::int64_t outputs = weights.shape()[0] / of.groups;
  for_each_index(y.shape(), [&](const Index& place) {
    for_each_index(Shape{channels, weights.shape()[2], weights.shape()[3]}, [&](const Index& tap) {
      const std::int64_t h = place[2] * of.stride.h - of.padding.h + tap[1] * of.dilation.h;
      const std::int64_t w = place[3] * of.stride.w - of.padding.w + tap[2] * of.dilation.w;
      if (h < 0 || h >= x.shape()[2] || w < 0 || w >= x.shape()[3]) return;
      const std::int64_t channel = place[1] / outputs * channels + tap[0];
      term(at(x, place[0], channel, h, w), at(weights, place[1], tap[0], tap[1], tap[2]), at(y, place));
    });
  });
}

std::int64_t places(std::int64_t input, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                    std::int64_t dilation) {
  return (input + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weights, const Conv2dOptions& of) {
  Tensor y = zeros({x.shape()[0], weights.shape()[0],
                    places(x.shape()[2], weights.shape()[2], of.stride.h, of.padding.h, of.dilation.h),
                    places(x.shape()[3], weights.shape()[3], of.stride.w, of.padding.w, of.dilation.w)});
  for_each_product(x, weights, y, of,
                   [](double of_x, double weight, double& of_y) { of_y += of_x * weight; });
  return y;
}

// The sum over y of y[...] grad_out[...] is linear in x and in the weights. The gradients are its
// coefficients.
Tensor conv2d_input_grad(const Tensor& weights, const Tensor& grad_out, Size2d input,
                         const Conv2dOptions& of) {
  Tensor x = zeros({grad_out.shape()[0], weights.shape()[1] * of.groups, input.h, input.w});
  for_each_product(x, weights, grad_out, of,
                   [](double& of_x, double weight, double grad) { of_x += weight * grad; });
  return x;
}

Tensor conv2d_weight_grad(const Tensor& x, const Tensor& grad_out, Size2d kernel, const Conv2dOptions& of) {
  Tensor weights = zeros({grad_out.shape()[1], x.shape()[1] / of.groups, kernel.h, kernel.w});
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
