#pragma once

#include <cstdint>

#include "core/params/placement.h"
#include "core/step/training_step.h"

namespace plexaura {

// Returns the LossScale with which training in float16 begins, for a model that was built for `samples` samples. A loss
// with a weight is a sum over labels, and only the update divides by the weight. So the scale of a loss with several labels
// for each sample begins smaller by the power of 2 at or below their number: the gradients of the first step are then as
// large as those of a mean. It is smaller by another factor of 8, because a mean over the labels of a net that was not
// trained yet may still overflow.
// The number of labels is that of the elements that LossOutputs::weight is reduced from.
LossScale first_loss_scale(const LossOutputs& model, std::int64_t samples);

}  // namespace plexaura
