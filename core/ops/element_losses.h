#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

// Losses of elements, made of other ops. `reduction` joins all elements: their mean (0 of none), their sum, or none for
// the elements themselves. Prediction and target have one floating type and shape; broadcasting would hide a forgotten axis.
// For a mean over samples take Reduction::none and reduce it.

// |prediction - target|
PLEXAURA_API Node l1(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// With d = |prediction - target|: d^2 / (2 beta) where d < beta, else d - beta / 2. beta is above 0.
PLEXAURA_API Node smooth_l1(Operand prediction, Operand target, double beta = 1,
                            Reduction reduction = Reduction::mean);

// delta times smooth_l1 with beta = delta. delta is above 0.
PLEXAURA_API Node huber(Operand prediction, Operand target, double delta = 1,
                        Reduction reduction = Reduction::mean);

// -target log(p) - (1 - target) log(1 - p) for probabilities p; a logarithm is taken for -100 where it is less, and has
// no gradient there. Take binary_cross_entropy_with_logits() where there are logits: it keeps all digits.
PLEXAURA_API Node binary_cross_entropy(Operand probabilities, Operand targets,
                                       Reduction reduction = Reduction::mean);

// target (log(target) - prediction) for a prediction that is the logarithm of a probability; 0 where the target is 0.
PLEXAURA_API Node kl_div(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// e^prediction - target prediction: that of a Poisson distribution whose mean is e^prediction, without the term of the
// target alone.
PLEXAURA_API Node poisson_nll(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// (log(v) + (prediction - target)^2 / v) / 2 with v = max(variance, epsilon), without the constant term. All three of one
// type and shape; epsilon is above 0. The variance has no gradient below epsilon.
PLEXAURA_API Node gaussian_nll(Operand prediction, Operand target, Operand variance, double epsilon = 1e-6,
                               Reduction reduction = Reduction::mean);

// max(0, 1 - target prediction), for targets of 1 and -1; its gradient is 0 at the kink.
PLEXAURA_API Node hinge(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// max(0, margin - target (a - b)): a is to be ranked above b where the target is 1, and below where it is -1. All three of
// one type and shape. Its gradient is 0 at the kink.
PLEXAURA_API Node margin_ranking(Operand a, Operand b, Operand target, double margin = 0,
                                 Reduction reduction = Reduction::mean);

}  // namespace plexaura
