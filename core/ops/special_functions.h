#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// More elementwise functions of one value; the common ones are in unary.h. They take floating types. The result
// has the operand's type.

PLEXAURA_API Node erfc(Operand x);     // 1 - erf(x), without loss of digits for large x
PLEXAURA_API Node erfinv(Operand x);   // y with erf(y) = x; infinite at -1 and 1, NaN beyond
PLEXAURA_API Node lgamma(Operand x);   // log |gamma(x)|; infinite at 0, -1, -2, ...
PLEXAURA_API Node digamma(Operand x);  // the derivative of lgamma; -infinity at 0, NaN at -1, -2, ...

// The derivative of digamma of the given order, which must not be negative. From order 1 on it is infinite at
// 0, -1, -2, ...
PLEXAURA_API Node polygamma(int order, Operand x);

}  // namespace plexaura
