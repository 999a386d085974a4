#pragma once

#include "models/layers/layer.h"

namespace plexaura::layers {

struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;  // weight of the batch's statistics when the running ones are updated
  Initialiser weight = Initialiser::ones();  // initial values of the scale
  bool synchronised = false;                 // true: statistics are over the samples of all ranks
  // True: the running statistics are used in training too, and do not change. Weight and bias are still
  // trained; freeze() freezes them.
  bool frozen = false;
};

// Batch normalisation of each channel, the op batch_norm: x [N, channels, ...] with two to five axes; the output
// has the same shape. In a graph of Mode::train, the statistics are those of the batch, and the running
// statistics are updated: running <- (1 - momentum) running + momentum batch, with the unbiased variance, as
// published weights require. In a graph of Mode::inference the running statistics are used and do not change.
// Parameters: weight and bias [channels]. Buffers: running_mean and running_var [channels]. A Trainer and an
// Optimizer refuse one element per channel, which equals its mean. With `synchronised`, the statistics are
// over the samples of all ranks in this step or micro-batch; this costs a sum over the ranks in the forward
// pass and one in the backward pass. Then a single element per channel over all ranks is not refused,
// although the layers before get no gradient.
class BatchNorm final : public Layer {
 public:
  // Throws UserError if the options are both `frozen` and `synchronised`.
  explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  Node normalised(Operand x) const;  // normalises x with two to four axes
  Node train(Operand x) const;
  void update(const Parameter& running, const Node& batch, double factor) const;

  BatchNormOptions options_;
  Parameter weight_;
  Parameter bias_;
  Parameter running_mean_;
  Parameter running_var_;
};

// The names that PyTorch has for this layer.
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;
using BatchNorm3d = BatchNorm;

}  // namespace plexaura::layers
