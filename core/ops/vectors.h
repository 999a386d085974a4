#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Products of vectors, made of other ops.

// The sum of a[i] b[i]: a [N] and b [N], numbers of one dtype, give a scalar; 0 if N is 0. A sum of integers
// that the dtype cannot hold wraps around. Shapes are not broadcast.
PLEXAURA_API Node dot(Operand a, Operand b);

// All products of an element of a with one of b: a [M] and b [N], numbers of one dtype, give [M, N].
PLEXAURA_API Node outer(Operand a, Operand b);

// The cosine of the angle between vectors along an axis: sum(a b) / (max(|a|, epsilon) max(|b|, epsilon)). a and b
// have one floating dtype and broadcast; the result lacks the axis, which is one of the broadcast shape. epsilon
// must be above 0. If a vector is shorter than epsilon, its length passes no gradient. 16-bit floats are computed in
// float32.
PLEXAURA_API Node cosine_similarity(Operand a, Operand b, std::int64_t axis = -1, double epsilon = 1e-8);

}  // namespace plexaura
