#pragma once

#include <optional>

#include "core/ops/window.h"
#include "models/layers/layer.h"

namespace plexaura::layers {

struct Conv2dOptions {
  Size2d stride{1, 1};
  Size2d padding{0, 0};
  Size2d dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  Initialiser weight = Initialiser::lecun_uniform();  // within 1 / sqrt(inputs of an output), as in PyTorch
  std::optional<Initialiser> bias_start = {};         // default: like the weight
};

// Convolution, the op conv2d: x [N, in, H, W] -> [N, out, OH, OW].
// Parameters: weight [out, in / groups, KH, KW], bias [out].
class Conv2d final : public Layer {
 public:
  // Throws UserError if `groups` does not divide `in` and `out`.
  Conv2d(std::int64_t in, std::int64_t out, Size2d kernel, const Conv2dOptions& options = {});

  void members(MemberVisitor& visit) override;
  Node operator()(Operand x) const override;

 private:
  Conv2dOptions options_;
  Parameter weight_;
  std::unique_ptr<Parameter> bias_;
};

}  // namespace plexaura::layers
