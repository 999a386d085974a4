#pragma once

#include "core/device/backend.h"

namespace plexaura::onednn {

// `candidate` computes the gradients of weights and bias from the source and the gradient of the result. The library adds up
// the bias' in float. Where that would cost digits the sum is made once more, in double, over what is returned.
Candidate with_exact_bias_grad(const RegionQuery& query, Candidate candidate);

}  // namespace plexaura::onednn
