#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Activation functions; relu, gelu, leaky_relu, sigmoid, tanh and softplus are in unary.h. They take floating
// values of any shape. The result has the operand's type. NaN stays NaN.

PLEXAURA_API Node log_sigmoid(Operand x);  // log(sigmoid(x)), without overflow for any x
PLEXAURA_API Node softsign(Operand x);     // x / (1 + |x|)
PLEXAURA_API Node silu(Operand x);         // x sigmoid(x)
PLEXAURA_API Node mish(Operand x);         // x tanh(softplus(x))

// x if x > 0, else alpha (e^x - 1). The gradient at 0 is alpha, which must be finite.
PLEXAURA_API Node elu(Operand x, double alpha = 1);
// x if x > 0, else alpha (e^(x / alpha) - 1). alpha must be finite and not 0.
PLEXAURA_API Node celu(Operand x, double alpha = 1);
// 1.0507... times elu with alpha = 1.6732..., which keeps mean 0 and variance 1 of activations (Klambauer et al.,
// arXiv:1706.02515).
PLEXAURA_API Node selu(Operand x);

// x if x > 0, else slope * x. The gradient at 0 is the slope. `slope` has the dtype of x and shape {1}, or {C} if
// axis 1 of x has C channels.
PLEXAURA_API Node prelu(Operand x, Operand slope);

// The number between `low` and `high` that is nearest to x. The gradient is passed on if low < x < high; clip() also
// passes it on at the bounds. `low` must not be above `high`.
PLEXAURA_API Node hard_tanh(Operand x, double low = -1, double high = 1);
PLEXAURA_API Node relu6(Operand x);         // hard_tanh(x, 0, 6)
PLEXAURA_API Node hard_sigmoid(Operand x);  // relu6(x + 3) / 6; its gradient at -3 and 3 is 0
PLEXAURA_API Node hard_swish(Operand x);    // x hard_sigmoid(x); its gradient is 0 at -3 and 1 at 3

}  // namespace plexaura
