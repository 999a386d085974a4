#pragma once

#include <cstdint>

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Normalisations made of other ops; see also layer_norm.h and batch_norm.h. Scales and shifts have x's dtype, or
// float32 for a 16-bit x, which is computed in float32. The results have x's type. Floating.

struct GroupNormOptions {
  double epsilon = 1e-5;  // added to the variance; above 0
};

// Group normalisation (Wu and He, arXiv:1803.08494). The channels of x [N, C, ...] are divided into `groups` groups,
// whose number divides C. Each group of each sample is brought to mean 0 and variance 1. Then each channel is scaled
// and shifted: scale and shift [C].
PLEXAURA_API Node group_norm(Operand x, std::int64_t groups, Operand scale, Operand shift,
                             GroupNormOptions options = {});
PLEXAURA_API Node group_norm(Operand x, std::int64_t groups, GroupNormOptions options = {});

// Instance normalisation (Ulyanov et al., arXiv:1607.08022): group_norm() with one channel in each group, for x with
// three axes or more. It always uses the moments of its input.
PLEXAURA_API Node instance_norm(Operand x, Operand scale, Operand shift, GroupNormOptions options = {});
PLEXAURA_API Node instance_norm(Operand x, GroupNormOptions options = {});

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;  // above 0
};

// Local response normalisation (Krizhevsky et al., 2012) divides each element of x [N, C, ...], with three axes or more,
// by (k + alpha / size * s)^beta. s sums the squares of `size` channels at the same position: of the element's own, of
// the size / 2 (rounded down) before it, and of the rest after it. Missing channels count as 0.
PLEXAURA_API Node local_response_norm(Operand x, std::int64_t size, LocalResponseNormOptions options = {});

}  // namespace plexaura
