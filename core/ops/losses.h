#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

// Losses that are composed of other ops. Axis 0 is the batch. A sample's loss is the sum over all other axes,
// and `reduction` combines the samples. So a mean is over samples, not over samples times outputs. The mean
// of zero samples is 0. A sample whose loss is replaced, as in where(valid, squared_error(x, y,
// Reduction::none), 0), has the gradient 0, even if its target is NaN.

// The sum of (prediction - target)^2. Both have the same type and shape, with at least one axis.
PLEXAURA_API Node squared_error(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// The sum of -target log(sigmoid(logit)) - (1 - target) log(1 - sigmoid(logit)), stable for any logit.
// Targets are from 0 to 1.
PLEXAURA_API Node binary_cross_entropy_with_logits(Operand logits, Operand targets,
                                                   Reduction reduction = Reduction::mean);

// The mean of (prediction - target)^2 over *all* elements, which other frameworks call mean squared error.
PLEXAURA_API Node mse(Operand prediction, Operand target);

}  // namespace plexaura
