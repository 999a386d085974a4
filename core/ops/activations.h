#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Activation functions beside relu, gelu, leaky_relu, sigmoid, tanh and softplus of unary.h. Any shape, floating types; the
// result has the operand's type. A NaN stays one.

PLEXAURA_API Node log_sigmoid(Operand x);  // log(sigmoid(x)), without overflow for any x
PLEXAURA_API Node softsign(Operand x);     // x / (1 + |x|)
PLEXAURA_API Node silu(Operand x);         // x sigmoid(x)
PLEXAURA_API Node mish(Operand x);         // x tanh(softplus(x))

// x where x > 0, else alpha (e^x - 1); its gradient at 0 is alpha. Both need a finite alpha.
PLEXAURA_API Node elu(Operand x, double alpha = 1);
// x where x > 0, else alpha (e^(x / alpha) - 1); alpha is not 0.
PLEXAURA_API Node celu(Operand x, double alpha = 1);
// 1.0507... times elu with alpha = 1.6732..., which keeps mean 0 and variance 1 (Klambauer et al., arXiv:1706.02515).
PLEXAURA_API Node selu(Operand x);

// x where x > 0, else slope x; the gradient at 0 is the slope. `slope` has the dtype of x and shape {1}, or {C} for the C
// channels on axis 1 of x.
PLEXAURA_API Node prelu(Operand x, Operand slope);

// The nearest number from `low` to `high`. The gradient passes where low < x < high, and clip's at the bounds, too. `low`
// must not be above `high`.
PLEXAURA_API Node hard_tanh(Operand x, double low = -1, double high = 1);
PLEXAURA_API Node relu6(Operand x);         // hard_tanh(x, 0, 6)
PLEXAURA_API Node hard_sigmoid(Operand x);  // relu6(x + 3) / 6; its gradient at -3 and 3 is 0
PLEXAURA_API Node hard_swish(Operand x);    // x hard_sigmoid(x); its gradient is 0 at -3 and 1 at 3

}  // namespace plexaura
