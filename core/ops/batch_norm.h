#pragma once

#include <string_view>

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Batch normalisation (Ioffe and Szegedy, arXiv:1502.03167) as two ops. The first computes the moments of
// each channel of x [N, C, ...] (two to four axes) over all other axes. The second brings x to mean 0 and
// variance 1 with given moments. Ops between the two may change the moments, for example to those of all
// ranks or of a whole run. Values with one element per channel are [C], of x's dtype, or float32 for a 16-bit
// x.

struct BatchNormOptions {
  double epsilon = 1e-5;  // added to the variance; above 0
  static void fields(auto& self, auto& visitor) { visitor("epsilon", self.epsilon); }
};

struct MomentsResult {
  Node mean;
  Node variance;  // biased (divided by the count)
  Node inverse;   // 1 / sqrt(variance + epsilon)
};

// The moments of x, all [C]. If there are no elements, mean and variance are 0.
PLEXAURA_API MomentsResult moments(Operand x, BatchNormOptions options = {});

// scale (x - mean) inverse + shift, of x's type. All arguments but x are [C].
PLEXAURA_API Node normalise(Operand x, Operand scale, Operand shift, Operand mean, Operand inverse);

struct BatchNormResult {
  Node y;
  Node mean;      // mean of the batch, [C]
  Node variance;  // variance of the batch, biased, [C]
};

// Batch normalisation for training: normalise() with the batch's own moments.
PLEXAURA_API BatchNormResult batch_norm(Operand x, Operand scale, Operand shift,
                                        BatchNormOptions options = {});

// Checks a graph that is to be trained. Throws UserError for the first batch_norm() over one element per
// channel: that element is its own mean, so the output is the shift, whatever x is, and nothing before it
// would be trained. `remedy` is the end of the error's sentence. Moments that other ops change before
// normalise(), such as sums over ranks, are not checked.
PLEXAURA_API void check_batch_norms(const Graph& graph, std::string_view remedy);

// Batch normalisation with a given mean and variance, such as the running ones.
PLEXAURA_API Node batch_norm_inference(Operand x, Operand scale, Operand shift, Operand mean,
                                       Operand variance, BatchNormOptions options = {});

// Inputs: x. Outputs: mean, variance, inverse.
class PLEXAURA_API Moments final : public OpOf<Moments, BatchNormOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "moments"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.precision = Precision::follows}; }
};

// The gradient of moments() by x, of x's type: (grad_mean - (x - mean) inverse^3 grad_inverse) / count, where
// count is the number of elements in a channel.
PLEXAURA_API Node moments_grad(Operand x, Operand mean, Operand inverse, Operand grad_mean,
                               Operand grad_inverse);

struct NormaliseGradResult {
  Node x;
  Node scale;
  Node shift;
  Node mean;
  Node inverse;
};

// The gradients of normalise() by each of its inputs.
PLEXAURA_API NormaliseGradResult normalise_grad(Operand x, Operand scale, Operand mean, Operand inverse,
                                                Operand grad_out);

}  // namespace plexaura
