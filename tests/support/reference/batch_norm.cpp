#include <cmath>

#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

// Returns the indices of a channel's elements.
std::vector<Index> indices_of(const Shape& x, std::int64_t channel) {
  std::vector<Index> indices;
  for_each_index(x, [&](const Index& index) {
    if (index[1] == channel) indices.push_back(index);
  });
  return indices;
}

double mean_of(const Tensor& x, const std::vector<Index>& of) {
  double sum = 0;
  for (const Index& index : of) sum += at(x, index);
  return sum / static_cast<double>(of.size());
}

double variance_of(const Tensor& x, const std::vector<Index>& of) {
  const double mean = mean_of(x, of);
  double sum = 0;
  for (const Index& index : of) sum += (at(x, index) - mean) * (at(x, index) - mean);
  return sum / static_cast<double>(of.size());
}

}  // namespace

std::vector<Tensor> moments(const Tensor& x, double epsilon) {
  const Shape channels{x.shape()[1]};
  Tensor mean = zeros(channels);
  Tensor variance = zeros(channels);
  Tensor inverse = zeros(channels);
  for (std::int64_t c = 0; c < x.shape()[1]; ++c) {
    at(mean, c) = mean_of(x, indices_of(x.shape(), c));
    at(variance, c) = variance_of(x, indices_of(x.shape(), c));
    at(inverse, c) = 1 / std::sqrt(at(variance, c) + epsilon);
  }
  return {mean, variance, inverse};
}

// The derivative with respect to each of n elements is 1 / n for the mean, 2 (x - mean) / n for the variance,
// and the latter times r^3 / -2 for the inverse.
Tensor moments_grad(const Tensor& x, const Tensor& mean, const Tensor& inverse, const Tensor& grad_mean,
                    const Tensor& grad_inverse) {
  Tensor grad = zeros(x.shape());
  for_each_index(x.shape(), [&](const Index& index) {
    const std::int64_t c = index[1];
    const auto n = static_cast<double>(x.shape().elements()) / static_cast<double>(x.shape()[1]);
    const double of_variance = 2 * (at(x, index) - at(mean, c)) / n;
    at(grad, index) =
        at(grad_mean, c) / n - std::pow(at(inverse, c), 3) / 2 * of_variance * at(grad_inverse, c);
  });
  return grad;
}

Tensor normalise(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                 const Tensor& inverse) {
  Tensor y = zeros(x.shape());
  for_each_index(x.shape(), [&](const Index& index) {
    const std::int64_t c = index[1];
    at(y, index) = at(scale, c) * (at(x, index) - at(mean, c)) * at(inverse, c) + at(shift, c);
  });
  return y;
}

std::vector<Tensor> normalise_grad(const Tensor& x, const Tensor& scale, const Tensor& mean,
                                   const Tensor& inverse, const Tensor& grad_out) {
  Tensor grad_x = zeros(x.shape());
  std::vector<Tensor> by_channel(4, zeros(scale.shape()));
  for_each_index(x.shape(), [&](const Index& index) {
    const std::int64_t c = index[1];
    const double g = at(grad_out, index);
    const double centred = at(x, index) - at(mean, c);
    at(grad_x, index) = g * at(scale, c) * at(inverse, c);
    at(by_channel[0], c) += g * centred * at(inverse, c);
    at(by_channel[1], c) += g;
    at(by_channel[2], c) -= g * at(scale, c) * at(inverse, c);
    at(by_channel[3], c) += g * at(scale, c) * centred;
  });
  return {grad_x, by_channel[0], by_channel[1], by_channel[2], by_channel[3]};
}

// With y_k = s n_k and n_k = (x_k - mean) / d, d = sqrt(variance + epsilon), of m elements in a channel:
// the derivative of n_k by x_i is ((i == k) - 1 / m - n_i n_k / m) / d.
std::vector<Tensor> batch_norm_grad(const Tensor& x, const Tensor& scale, const Tensor& grad_out,
                                    double epsilon) {
  Tensor grad_x = zeros(x.shape());
  Tensor grad_scale = zeros(scale.shape());
  Tensor grad_shift = zeros(scale.shape());
  for (std::int64_t c = 0; c < x.shape()[1]; ++c) {
    const std::vector<Index> all = indices_of(x.shape(), c);
    const double mean = mean_of(x, all);
    const double deviation = std::sqrt(variance_of(x, all) + epsilon);
    const auto count = static_cast<double>(all.size());
    const auto normal = [&](const Index& index) { return (at(x, index) - mean) / deviation; };
    for (const Index& k : all) {
      at(grad_scale, c) += at(grad_out, k) * normal(k);
      at(grad_shift, c) += at(grad_out, k);
      for (const Index& i : all)
        at(grad_x, i) += at(grad_out, k) * at(scale, c) *
                         ((i == k ? 1 : 0) - 1 / count - normal(i) * normal(k) / count) / deviation;
    }
  }
  return {grad_x, grad_scale, grad_shift};
}

}  // namespace plexaura::testing::reference
