#pragma once

#include <cstdint>
#include <optional>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

struct LayerNormOptions {
  double epsilon = 1e-5;  // added to the variance; above 0
};

// Layer normalisation (Ba, Kiros and Hinton, arXiv:1607.06450). Over the last axes of x, those that `scale`
// has, each sample is brought to mean 0 and variance 1, then scaled and shifted element by element:
//   y = scale (x - mean) / sqrt(variance + epsilon) + shift.
// x [..., D...]; scale and shift [D...], with at least one axis, of x's dtype, or float32 for a 16-bit x,
// which is computed in float32. -> y of x's type. Floating.
PLEXAURA_API Node layer_norm(Operand x, Operand scale, Operand shift, LayerNormOptions options = {});

// Layer normalisation without scale and shift, over the last `axes` axes of x, at least one.
PLEXAURA_API Node standardise(Operand x, std::int64_t axes = 1, LayerNormOptions options = {});

struct RmsNormOptions {
  // At least 0. By default the distance between 1 and the next larger number of the dtype that is computed in.
  std::optional<double> epsilon = {};
};

// Division by the root of the mean square (Zhang and Sennrich, arXiv:1910.07467), over the last axes of x, those that
// `scale` has, at least one:
//   y = scale x / sqrt(mean(x^2) + epsilon).
// x [..., D...]; the scale [D...], of x's dtype, or float32 for a 16-bit x, which is computed in float32. -> y of x's
// type. Floating.
PLEXAURA_API Node rms_norm(Operand x, Operand scale, RmsNormOptions options = {});

}  // namespace plexaura
