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

}  // namespace plexaura
