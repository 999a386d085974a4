#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"
#include "core/ops/cross_entropy.h"

namespace plexaura {

// Losses that are computed for each element, composed of other ops. `reduction` selects the mean over all elements
// (0 if there are none), their sum, or `none` for the losses of the elements. Prediction and target must have the
// same floating type and the same shape, because broadcasting would hide a forgotten axis. For a mean over samples
// use Reduction::none and reduce the result.

// |prediction - target|
PLEXAURA_API Node l1(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// With d = |prediction - target|: d^2 / (2 beta) if d < beta, else d - beta / 2. beta must be above 0, and in the range of
// the dtype: for float16 from 2^-24 to 65504. The second derivative is 0 where d is beta.
PLEXAURA_API Node smooth_l1(Operand prediction, Operand target, double beta = 1,
                            Reduction reduction = Reduction::mean);

// delta times smooth_l1 with beta = delta. delta must be above 0, and in the range of the dtype.
PLEXAURA_API Node huber(Operand prediction, Operand target, double delta = 1,
                        Reduction reduction = Reduction::mean);

// -target log(p) - (1 - target) log(1 - p) for probabilities p. A logarithm below -100 counts as -100 and then has no
// gradient. If you have logits, use binary_cross_entropy_with_logits(), which loses no digits.
PLEXAURA_API Node binary_cross_entropy(Operand probabilities, Operand targets,
                                       Reduction reduction = Reduction::mean);

// target * (log(target) - prediction), or 0 where the target is 0. The prediction is the log of a probability.
PLEXAURA_API Node kl_div(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// e^prediction - target * prediction: the negative log-likelihood of a Poisson distribution with mean e^prediction,
// without the term that depends only on the target.
PLEXAURA_API Node poisson_nll(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// (log(v) + (prediction - target)^2 / v) / 2 with v = max(variance, epsilon): the negative log-likelihood of a normal
// distribution without its constant term. All three operands have the same type and shape. epsilon must be above 0, and in the
// range of the dtype.
// A variance below epsilon has no gradient.
PLEXAURA_API Node gaussian_nll(Operand prediction, Operand target, Operand variance, double epsilon = 1e-6,
                               Reduction reduction = Reduction::mean);

// max(0, 1 - target * prediction), for targets 1 and -1. The gradient is 0 where target * prediction = 1.
PLEXAURA_API Node hinge(Operand prediction, Operand target, Reduction reduction = Reduction::mean);

// max(0, margin - target (a - b)): a should be above b if the target is 1, and below b if it is -1. All three operands
// have the same type and shape. The gradient is 0 where target (a - b) = margin.
PLEXAURA_API Node margin_ranking(Operand a, Operand b, Operand target, double margin = 0,
                                 Reduction reduction = Reduction::mean);

}  // namespace plexaura
