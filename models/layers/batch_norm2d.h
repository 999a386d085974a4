#pragma once

#include "models/layers/layer.h"

namespace plexaura::layers {

struct BatchNorm2dOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;                     // weight of the batch in the running statistics
  Initialiser weight = Initialiser::ones();  // the scale
  bool synchronised = false;                 // the batch is that of all ranks
};

// Batch normalisation of each channel, the op batch_norm: x [N, channels, H, W], or [N, channels], of the
// same shape. In a graph of Mode::train, statistics are those of the batch, and the running ones are updated:
// running <- (1 - momentum) running + momentum batch, with the unbiased variance, as published weights
// expect. In a graph of Mode::inference the running statistics are used and nothing is updated. Parameters:
// weight and bias [channels]. Buffers: running_mean and running_var [channels]. A Trainer and an Optimizer refuse
// one element per channel, which is its own mean. Where `synchronised`, the batch is what all ranks have together in
// this step, or in this micro-batch; it costs a sum over the ranks in the forward pass and one in the backward pass. A
// single element per channel over all ranks trains nothing before the layer, and is not refused.
class BatchNorm2d final : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels, const BatchNorm2dOptions& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) override;

 private:
  Node train(Operand x);
  void update(Parameter& running, const Node& batch, double factor) const;

  BatchNorm2dOptions options_;
  Parameter weight_;
  Parameter bias_;
  Parameter running_mean_;
  Parameter running_var_;
};

}  // namespace plexaura::layers
