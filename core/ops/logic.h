#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Elementwise predicates, logical operations and operations on bits. None has a gradient. Operands broadcast.

// Operands may have any dtype; every value but zero is true, NaN too. The result is bool.
PLEXAURA_API Node logical_and(Operand a, Operand b);
PLEXAURA_API Node logical_or(Operand a, Operand b);
PLEXAURA_API Node logical_xor(Operand a, Operand b);
PLEXAURA_API Node logical_not(Operand x);

// For floating operands. The result is bool.
PLEXAURA_API Node is_nan(Operand x);
PLEXAURA_API Node is_finite(Operand x);  // neither infinite nor NaN

// Bitwise operations on integers of the same dtype. For bool use logical_and(), logical_or() and so on.
PLEXAURA_API Node bitwise_and(Operand a, Operand b);
PLEXAURA_API Node bitwise_or(Operand a, Operand b);
PLEXAURA_API Node bitwise_xor(Operand a, Operand b);
PLEXAURA_API Node bitwise_not(Operand x);

// Shifts the bits of a by b places. Bits that leave the dtype are lost. New bits are zero; in a right shift of a signed
// number they are copies of its sign bit. If b is negative, or at least the number of bits, all bits are lost.
PLEXAURA_API Node left_shift(Operand a, Operand b);
PLEXAURA_API Node right_shift(Operand a, Operand b);

}  // namespace plexaura
