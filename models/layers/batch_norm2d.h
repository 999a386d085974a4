#pragma once

#include "models/layers/layer.h"

namespace plexaura::layers {

struct BatchNorm2dOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;                     // weight of the batch in the running statistics
  Initialiser weight = Initialiser::ones();  // the scale
  bool synchronised = false;                 // statistics are over the batches of all ranks
};

// Batch normalisation of each channel, the op batch_norm: x [N, channels, H, W], or [N, channels]; the output
// has the same shape. In a graph of Mode::train, the statistics are those of the batch, and the running
// statistics are updated: running <- (1 - momentum) running + momentum batch, with the unbiased variance, as
// published weights require. In a graph of Mode::inference the running statistics are used and do not change.
// Parameters: weight and bias [channels]. Buffers: running_mean and running_var [channels]. A Trainer and an
// Optimizer refuse one element per channel, which equals its mean. With `synchronised`, the statistics are
// over the samples of all ranks in this step or micro-batch; this costs a sum over the ranks in the forward
// pass and one in the backward pass. Then a single element per channel over all ranks is not refused,
// although the layers before get no gradient.
class BatchNorm2d final : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels, const BatchNorm2dOptions& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  Node train(Operand x) const;
  void update(const Parameter& running, const Node& batch, double factor) const;

  BatchNorm2dOptions options_;
  Parameter weight_;
  Parameter bias_;
  Parameter running_mean_;
  Parameter running_var_;
};

}  // namespace plexaura::layers
