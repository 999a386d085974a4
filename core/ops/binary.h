#pragma once

#include "core/base/export.h"
#include "core/graph/node.h"

namespace plexaura {

// Elementwise functions of two values of one dtype, with numpy's broadcasting; one of them may be a number.
// There is no implicit promotion: mixed dtypes are an error that names cast().

PLEXAURA_API Node add(Operand a, Operand b);
PLEXAURA_API Node sub(Operand a, Operand b);
PLEXAURA_API Node mul(Operand a, Operand b);
// Quotients of integers are rounded towards zero, and are 0 for b = 0.
PLEXAURA_API Node div(Operand a, Operand b);

// weight_a * a + weight_b * b. Floating.
PLEXAURA_API Node weighted_sum(Operand a, double weight_a, Operand b, double weight_b);

// floor_div is floor(a / b), and mod is the remainder a - b floor(a / b), which has the sign of b, as in Python.
// Any dtype but bool. With b = 0, floor_div is 0 and mod is a for integers; for floats they are a / 0 and NaN.
// floor_div has no gradient. The gradient of mod is the cotangent for a, and -floor(a / b) times it for b.
PLEXAURA_API Node floor_div(Operand a, Operand b);
PLEXAURA_API Node mod(Operand a, Operand b);

// The larger and the smaller of two values. If one is NaN, the result is NaN. Equal operands get half of the
// gradient each.
PLEXAURA_API Node maximum(Operand a, Operand b);
PLEXAURA_API Node minimum(Operand a, Operand b);
// a to the power of b. Floating. The gradient by b is 0 where a is 0, and the gradient by a is 0 where b is
// 0.
PLEXAURA_API Node pow(Operand a, Operand b);
// a^b (log a)^order: the derivative of a^b by b of this order. It is 0 wherever a^b is. Floating.
PLEXAURA_API Node pow_log(Operand a, Operand b, int order);

// a * b, but 0 where a is 0, even if b is infinite or NaN. Floating.
PLEXAURA_API Node mul_no_nan(Operand a, Operand b);

// The cross-entropy of sigmoid(logit) against a target from 0 to 1: softplus(logit) - logit * target, precise
// for any logit. Floating.
PLEXAURA_API Node sigmoid_cross_entropy(Operand logits, Operand targets);

inline Node operator+(Operand a, Operand b) { return add(a, b); }
inline Node operator-(Operand a, Operand b) { return sub(a, b); }
inline Node operator*(Operand a, Operand b) { return mul(a, b); }
inline Node operator/(Operand a, Operand b) { return div(a, b); }

// Adds b to a. The variable `a` then holds a new node; other handles of the old node keep it.
inline Node& operator+=(Node& a, Operand b) { return a = add({a, b.where()}, b); }
inline Node& operator-=(Node& a, Operand b) { return a = sub({a, b.where()}, b); }
inline Node& operator*=(Node& a, Operand b) { return a = mul({a, b.where()}, b); }
inline Node& operator/=(Node& a, Operand b) { return a = div({a, b.where()}, b); }

// Comparisons. The results are bool, and have no gradient. There is no operator for eq() and ne().
PLEXAURA_API Node eq(Operand a, Operand b);
PLEXAURA_API Node ne(Operand a, Operand b);
PLEXAURA_API Node lt(Operand a, Operand b);
PLEXAURA_API Node le(Operand a, Operand b);
PLEXAURA_API Node gt(Operand a, Operand b);
PLEXAURA_API Node ge(Operand a, Operand b);

inline Node operator<(Operand a, Operand b) { return lt(a, b); }
inline Node operator<=(Operand a, Operand b) { return le(a, b); }
inline Node operator>(Operand a, Operand b) { return gt(a, b); }
inline Node operator>=(Operand a, Operand b) { return ge(a, b); }

// a where `condition` (bool) is true, else b; all three broadcast. The operand that is not chosen gets the
// gradient 0. This gradient remains 0 only if the ops before have a finite derivative: where(gt(x, 0),
// sqrt(x), x) has a NaN gradient for x < 0, since 0 times the NaN of sqrt's derivative is NaN. To avoid it,
// choose the operand of such an op instead: sqrt(where(gt(x, 0), x, 1)). The losses of losses.h and
// cross_entropy.h are safe.
PLEXAURA_API Node where(Operand condition, Operand a, Operand b);

}  // namespace plexaura
