#pragma once

#include <cstdint>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

struct LayerNormOptions {
  double epsilon = 1e-5;  // above 0
};

// Layer normalisation (Ba, Kiros and Hinton, arXiv:1607.06450). Over the last axes of x, those that `scale`
// has, each sample is brought to mean 0 and variance 1, then scaled and shifted element by element:
//   y = scale (x - mean) / sqrt(variance + epsilon) + shift.
// x [..., D...]; scale and shift [D...], with at least one axis, of x's dtype, or float32 for a 16-bit x,
// which is computed in float32. -> y of x's type. Floating.
PLEXAURA_API Node layer_norm(Operand x, Operand scale, Operand shift, LayerNormOptions options = {});

// Layer normalisation without scale and shift, over the last `axes` axes of x, at least one.
PLEXAURA_API Node standardise(Operand x, std::int64_t axes = 1, LayerNormOptions options = {});

}  // namespace plexaura
