#pragma once

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct BatchNormOptions {
  double epsilon = 1e-5;
  void describe(Description& to) const { to.add("epsilon", epsilon); }
};

struct BatchNormResult {
  Node y;
  Node mean;      // of the batch, [C]
  Node variance;  // of the batch, biased (divided by the count), [C]
};

// Batch normalisation in training (Ioffe and Szegedy, arXiv:1502.03167): each channel of x [N, C, ...] (two
// to four axes) is brought to mean 0 and variance 1 over all other axes, then scaled and shifted:
//   y = scale (x - mean) / sqrt(variance + epsilon) + shift.
// scale and shift are [C], of x's dtype, or float32 for a 16-bit x; so are mean and variance, through which
// no gradient flows: y's gradient takes into account that they are functions of x. Over no elements at all
// mean and variance are 0.
PLEXAURA_API BatchNormResult batch_norm(Operand x, Operand scale, Operand shift,
                                        BatchNormOptions options = {});

struct BatchNormGradResult {
  Node x;
  Node scale;
  Node shift;
};

// The gradients of batch_norm from its saved mean and variance.
PLEXAURA_API BatchNormGradResult batch_norm_grad(Operand x, Operand scale, Operand mean, Operand variance,
                                                 Operand grad_out, BatchNormOptions options = {});

// The same formula with a mean and variance that are given (the running ones): all of them [C].
PLEXAURA_API Node batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean,
                                       Operand variance, BatchNormOptions options = {});

// What the three ops have in common.
using BatchNormOp = OpWith<BatchNormOptions>;

// Inputs: x, scale, shift. Outputs: y; saved: mean, variance.
class PLEXAURA_API BatchNorm final : public BatchNormOp {
 public:
  using OpWith::OpWith;
  std::string_view name() const override { return "batch_norm"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  OpTraits traits() const override { return {.saved_outputs = 2}; }
};

// Inputs: x, scale, mean, variance, grad_out. Outputs: the gradients of x, scale and shift. Its vjp is the
// total derivative with respect to x, scale and grad_out: mean and variance count as functions of x.
class PLEXAURA_API BatchNormGrad final : public BatchNormOp {
 public:
  using OpWith::OpWith;
  std::string_view name() const override { return "batch_norm_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
};

// Inputs: x, scale, shift, mean, variance.
class PLEXAURA_API BatchNormInference final : public BatchNormOp {
 public:
  using OpWith::OpWith;
  std::string_view name() const override { return "batch_norm_inference"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
};

}  // namespace plexaura
