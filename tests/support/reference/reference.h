#pragma once

#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/optimizer_steps.h"
#include "core/ops/pool2d.h"
#include "core/ops/reduce.h"
#include "testing/op_case.h"

// Reference results of every op, written from its definition with plain loops and std:: functions, one
// element at a time, in float64. Nothing is shared with a kernel, so that tests notice a wrong formula that
// all kernels share. Values are float64 whatever their dtype in the graph, including labels, indices and
// masks.

namespace plexaura::testing::reference {

// Return the `expected` of elementwise cases: f of each element, with operands broadcast.
Expected elementwise(double (*f)(double x));
Expected elementwise(double (*f)(double a, double b));
Expected elementwise(double (*f)(double a, double b, double c));

Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor permute(const Tensor& x, const std::vector<std::int64_t>& axes);

// Each result is `of` the elements along the reduced axes, in order.
Tensor reduce(const Tensor& x, const ReduceOptions& options, double (*of)(const std::vector<double>&));
double sum(const std::vector<double>& values);
double mean(const std::vector<double>& values);
double largest(const std::vector<double>& values);   // NaN if any element is NaN
double smallest(const std::vector<double>& values);  // NaN if any element is NaN
double place_of_largest(const std::vector<double>& values);

Tensor matmul(const Tensor& a, const Tensor& b, const MatMulOptions& options);

Tensor softmax(const Tensor& x, std::int64_t axis);
Tensor log_softmax(const Tensor& x, std::int64_t axis);
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, Reduction reduction);
Tensor cross_entropy_grad(const Tensor& logits, const Tensor& labels, const Tensor& grad_out,
                          Reduction reduction);
Tensor one_hot(const Tensor& labels, std::int64_t classes);
Tensor top_k_correct(const Tensor& logits, const Tensor& labels, std::int64_t k);
// Reduces the losses of samples to one number. `losses` [N, ...] are first summed over all axes but the
// first.
Tensor join_samples(const Tensor& losses, Reduction reduction);

Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& of);
Tensor max_pool2d_grad(const Tensor& grad_out, const Tensor& index, Size2d input, const MaxPool2dOptions& of);
Tensor max_pool2d_gather(const Tensor& x, const Tensor& index, const MaxPool2dOptions& of);
Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& of);
Tensor avg_pool2d_grad(const Tensor& grad_out, Size2d input, const AvgPool2dOptions& of);

// Return mean, variance and 1 / sqrt(variance + epsilon), and their gradient.
std::vector<Tensor> moments(const Tensor& x, double epsilon);
Tensor moments_grad(const Tensor& x, const Tensor& mean, const Tensor& inverse, const Tensor& grad_mean,
                    const Tensor& grad_inverse);
Tensor normalise(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                 const Tensor& inverse);
// Returns the gradients of x, scale, shift, mean and inverse.
std::vector<Tensor> normalise_grad(const Tensor& x, const Tensor& scale, const Tensor& mean,
                                   const Tensor& inverse, const Tensor& grad_out);
// Returns the gradients of x, scale and shift. Mean and inverse are those of x.
std::vector<Tensor> batch_norm_grad(const Tensor& x, const Tensor& scale, const Tensor& grad_out,
                                    double epsilon);

// Returns 1 for elements that a dropout with this stream keeps, and 0 for others.
Tensor dropout_mask(const Shape& shape, const DropoutOptions& options, const StepBlock& block,
                    std::int64_t stream);

// Returns the new value and, with momentum, the new momentum. `momentum` is null without momentum.
std::vector<Tensor> sgd_step(const Tensor& value, const Tensor& grad, const Tensor* momentum, double rate,
                             const SgdOptions& of);
// Returns the new value, mean and square.
std::vector<Tensor> adam_step(std::span<const Tensor> value_grad_mean_square, double rate, double step,
                              const AdamOptions& of);
// `values` are the value, the gradient and the state in the order of RmsStep's inputs. Returns the new value and state.
std::vector<Tensor> rms_step(std::span<const Tensor> values, double rate, const RmsOptions& of);

}  // namespace plexaura::testing::reference
