#pragma once

#include "core/base/export.h"
#include "core/ops/dropout.h"

namespace plexaura {

// dropout() with one draw for many elements: all of them become 0, or all are divided by 1 - p. Like
// dropout(), these functions return x itself in Mode::inference, or if p is 0. Floating.

// One draw for each channel of each sample: x [N, C, L], [N, C, H, W] and [N, C, D, H, W].
PLEXAURA_API Node dropout1d(Operand x, DropoutOptions options = {});
PLEXAURA_API Node dropout2d(Operand x, DropoutOptions options = {});
PLEXAURA_API Node dropout3d(Operand x, DropoutOptions options = {});

// One draw for each sample, for the residual branches of a network (stochastic depth, Huang et al.,
// arXiv:1603.09382): x [N, ...].
PLEXAURA_API Node drop_path(Operand x, DropoutOptions options = {});

}  // namespace plexaura
