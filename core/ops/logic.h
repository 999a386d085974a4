#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Elementwise questions and operations on truth values and bits. None has a gradient. Operands broadcast.

// Of any dtype, where anything but zero, a NaN too, is true. Bool.
PLEXAURA_API Node logical_and(Operand a, Operand b);
PLEXAURA_API Node logical_or(Operand a, Operand b);
PLEXAURA_API Node logical_xor(Operand a, Operand b);
PLEXAURA_API Node logical_not(Operand x);

// Of floating values. Bool.
PLEXAURA_API Node is_nan(Operand x);
PLEXAURA_API Node is_finite(Operand x);  // neither infinite nor NaN

// Bit by bit, of integers of one dtype; for bools use logical_and() and its kind.
PLEXAURA_API Node bitwise_and(Operand a, Operand b);
PLEXAURA_API Node bitwise_or(Operand a, Operand b);
PLEXAURA_API Node bitwise_xor(Operand a, Operand b);
PLEXAURA_API Node bitwise_not(Operand x);

// The bits of a, moved by b places. What leaves the dtype is lost; zeros come in, and from the left of a signed number
// copies of its sign. By a negative b, or by as many places as there are bits, all bits leave.
PLEXAURA_API Node left_shift(Operand a, Operand b);
PLEXAURA_API Node right_shift(Operand a, Operand b);

}  // namespace plexaura
