#pragma once

#include "core/device/backend.h"

namespace plexaura::onednn {

// `candidate` computes the gradients of weights and bias from the source and the gradient of the result. The library
// adds up the bias' gradient in float. If a float32 result would lose digits, and the kernel of sum() can read the
// candidate's layout, the returned candidate computes the sum again with that kernel, over the library's sum.
Candidate with_exact_bias_grad(const RegionQuery& query, Candidate candidate);

}  // namespace plexaura::onednn
