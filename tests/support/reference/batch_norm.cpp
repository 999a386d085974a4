#include <cmath>

#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

namespace {

// The indices of a channel's elements.
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

std::vector<Tensor> batch_norm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon) {
  Tensor mean = zeros(scale.shape());
  Tensor variance = zeros(scale.shape());
  for (std::int64_t c = 0; c < x.shape()[1]; ++c) {
    at(mean, c) = mean_of(x, indices_of(x.shape(), c));
    at(variance, c) = variance_of(x, indices_of(x.shape(), c));
  }
  return {batch_norm_inference(x, scale, shift, mean, variance, epsilon), mean, variance};
}

Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                            const Tensor& variance, double epsilon) {
  Tensor y = zeros(x.shape());
  for_each_index(x.shape(), [&](const Index& index) {
    const std::int64_t c = index[1];
    at(y, index) =
        at(scale, c) * (at(x, index) - at(mean, c)) / std::sqrt(at(variance, c) + epsilon) + at(shift, c);
  });
  return y;
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
