#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Elementwise trigonometric functions, with angles in radians, and hyperbolic functions. They take floating types. The
// result has the operand's type, and is NaN where the function has no real value.

PLEXAURA_API Node sin(Operand x);
PLEXAURA_API Node cos(Operand x);
PLEXAURA_API Node tan(Operand x);
PLEXAURA_API Node asin(Operand x);  // from -pi / 2 to pi / 2; the gradient at -1 and 1 is infinite
PLEXAURA_API Node acos(Operand x);  // from 0 to pi; the gradient at -1 and 1 is infinite
PLEXAURA_API Node atan(Operand x);  // from -pi / 2 to pi / 2
PLEXAURA_API Node sinh(Operand x);
PLEXAURA_API Node cosh(Operand x);
PLEXAURA_API Node asinh(Operand x);
PLEXAURA_API Node acosh(Operand x);  // for x >= 1; at 1 its gradient is infinite
PLEXAURA_API Node atanh(Operand x);  // for -1 <= x <= 1; infinite at -1 and 1

// hypot is the length of the vector (a, b); its squares do not overflow. atan2 is the angle of the point with abscissa b
// and ordinate a, from -pi to pi. The operands broadcast and have the same dtype. At (0, 0) the gradients are 0.
PLEXAURA_API Node hypot(Operand a, Operand b);
PLEXAURA_API Node atan2(Operand a, Operand b);

}  // namespace plexaura
