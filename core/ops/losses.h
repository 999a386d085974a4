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

// Does the same with the first term multiplied by pos_weight, a number or a value that broadcasts to the
// shape of the logits: a weight for each class has the shape [C] for logits [N, C].
PLEXAURA_API Node binary_cross_entropy_with_logits(Operand logits, Operand targets, Operand pos_weight,
                                                   Reduction reduction = Reduction::mean);

// (prediction - target)^2, which other frameworks call mean squared error. Unlike in the losses above, a mean
// is over *all* elements, and Reduction::none keeps the elements.
PLEXAURA_API Node mse(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

}  // namespace plexaura
