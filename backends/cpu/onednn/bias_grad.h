#pragma once

#include "core/device/backend.h"

namespace plexaura::onednn {

// `candidate` computes the gradients of weights and bias from the source and the gradient of the result. The
// library adds up the bias' gradient in float. If a float32 result loses digits in this way, the returned
// candidate computes the sum again in double, and overwrites the library's sum.
Candidate with_exact_bias_grad(const RegionQuery& query, Candidate candidate);

}  // namespace plexaura::onednn
