#include <algorithm>
#include <cmath>

#include "tests/support/reference/access.h"
#include "tests/support/reference/reference.h"

namespace plexaura::testing::reference {

// e^x / (sum of e^x along the axis)
Tensor softmax(const Tensor& x, std::int64_t axis) {
  Tensor y = zeros(x.shape());
  const std::int64_t along = axis < 0 ? axis + x.shape().rank() : axis;
  for_each_index(x.shape(), [&](const Index& index) {
    double total = 0;
    Index other = index;
    for (std::int64_t i = 0; i < x.shape()[along]; ++i) {
      other[static_cast<std::size_t>(along)] = i;
      total += std::exp(at(x, other));
    }
    at(y, index) = std::exp(at(x, index)) / total;
  });
  return y;
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  Tensor y = softmax(x, axis);
  for (double& value : y.as<double>()) value = std::log(value);
  return y;
}

namespace {

double weight_of_sample(std::int64_t samples, Reduction reduction) {
  return reduction == Reduction::mean ? 1 / std::max(1.0, static_cast<double>(samples)) : 1.0;
}

}  // namespace

Tensor join_samples(const Tensor& losses, Reduction reduction) {
  const std::int64_t samples = losses.shape()[0];
  Tensor by_sample = zeros({samples});
  for_each_index(losses.shape(), [&](const Index& index) { at(by_sample, index[0]) += at(losses, index); });
  if (reduction == Reduction::none) return by_sample;
  Tensor joined = zeros({});
  for (const double loss : by_sample.as<double>()) at(joined) += loss * weight_of_sample(samples, reduction);
  return joined;
}

// -log(softmax(logits)[n, labels[n]])
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction) {
  const Tensor logarithms = log_softmax(logits, 1);
  Tensor losses = zeros(labels.shape());
  for (std::int64_t n = 0; n < logits.shape()[0]; ++n)
    at(losses, n) = -at(logarithms, n, static_cast<std::int64_t>(at(labels, n)));
  return join_samples(losses, reduction);
}

// (softmax(logits) - one_hot(labels)), times the gradient of the sample's loss.
Tensor cross_entropy_grad(const Tensor& logits, const Tensor& labels, const Tensor& grad_out,
                          Reduction reduction) {
  const Tensor p = softmax(logits, 1);
  const Tensor hot = one_hot(labels, logits.shape()[1]);
  Tensor grad = zeros(logits.shape());
  for_each_index(logits.shape(), [&](const Index& index) {
    const double of_loss = reduction == Reduction::none ? at(grad_out, index[0]) : at(grad_out);
    at(grad, index) =
        weight_of_sample(logits.shape()[0], reduction) * of_loss * (at(p, index) - at(hot, index));
  });
  return grad;
}

Tensor one_hot(const Tensor& labels, std::int64_t classes) {
  std::vector<std::int64_t> extents = labels.shape().extents();
  extents.push_back(classes);
  Tensor y = zeros(Shape(extents));
  for_each_index(y.shape(), [&](const Index& index) {
    const Index of_label(index.begin(), index.end() - 1);
    at(y, index) = at(labels, of_label) == static_cast<double>(index.back()) ? 1 : 0;
  });
  return y;
}

// A sample is a hit where fewer than k classes come before its label.
Tensor top_k_correct(const Tensor& logits, const Tensor& labels, std::int64_t k) {
  Tensor hits = zeros({});
  for (std::int64_t n = 0; n < logits.shape()[0]; ++n) {
    const auto label = static_cast<std::int64_t>(at(labels, n));
    std::int64_t before = 0;
    for (std::int64_t c = 0; c < logits.shape()[1]; ++c)
      before +=
          at(logits, n, c) > at(logits, n, label) || (at(logits, n, c) == at(logits, n, label) && c < label);
    at(hits) += before < k;
  }
  return hits;
}

}  // namespace plexaura::testing::reference
