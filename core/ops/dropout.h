#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

struct DropoutOptions {
  double p = 0.5;     // the probability that an element becomes 0; at least 0 and less than 1
  bool batch = true;  // true if axis 0 is the batch; false: all ranks draw the same numbers

  static void fields(auto& self, auto& visitor) {
    visitor("p", self.p);
    visitor("batch", self.batch);
  }
};

// DropoutOptions, and the number of the op's random stream. Each random op of a graph has another stream.
struct DropoutDraws : DropoutOptions {
  std::int64_t stream = 0;

  static void fields(auto& self, auto& visitor) {
    DropoutOptions::fields(self, visitor);
    visitor("stream", self.stream);
  }
};

struct DropoutGradOptions {
  double p = 0.5;

  static void fields(auto& self, auto& visitor) { visitor("p", self.p); }
};

// Sets elements of x to 0 with probability p, and divides the others by 1 - p. Returns x itself in
// Mode::inference, or if p is 0. Floating. The random bits depend only on the run's seed, the step, this op's
// stream and the element's place in the global batch. So any number of ranks and micro-batches draws the
// numbers that one rank with the whole batch draws. A VM that is run without a StepBlock draws new bits in
// each run. With a StepBlock, the block must give the step: vm.run(feeds, {.step = n, .seed = s}).
PLEXAURA_API Node dropout(Operand x, DropoutOptions options = {});

// The gradient of dropout(): grad / (1 - p) where the mask is true, else 0. `p` is the dropout's probability.
PLEXAURA_API Node dropout_grad(Operand grad_out, Operand mask, double p);

// Inputs: x, StepScalar::random. Outputs: y; saved: the mask (bool), true for elements that are kept.
class PLEXAURA_API DropoutOp final : public OpOf<DropoutOp, DropoutDraws> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "dropout"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override {
    return {.saved_outputs = 1, .random = true, .precision = Precision::follows};
  }
};

// Inputs: grad_out, mask.
class PLEXAURA_API DropoutGrad final : public OpOf<DropoutGrad, DropoutGradOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "dropout_grad"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.elementwise = true}; }
};

}  // namespace plexaura
