#pragma once

#include "core/base/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Elementwise functions of one value of any shape, of floating types unless a comment says otherwise. The
// result has the operand's type.

PLEXAURA_API Node neg(Operand x);       // -x
PLEXAURA_API Node abs(Operand x);       // |x|; the gradient at 0 is 0
PLEXAURA_API Node exp(Operand x);       // e^x
PLEXAURA_API Node log(Operand x);       // natural logarithm
PLEXAURA_API Node sqrt(Operand x);      // square root
PLEXAURA_API Node square(Operand x);    // x^2
PLEXAURA_API Node sigmoid(Operand x);   // 1 / (1 + e^-x), without overflow for any x
PLEXAURA_API Node tanh(Operand x);      // hyperbolic tangent
PLEXAURA_API Node relu(Operand x);      // max(x, 0); the gradient at 0 is 0
PLEXAURA_API Node softplus(Operand x);  // log(1 + e^x), without overflow for any x
PLEXAURA_API Node erf(Operand x);       // 2 / sqrt(pi) times the integral of e^-t^2 from 0 to x

PLEXAURA_API Node cube(Operand x);        // x^3
PLEXAURA_API Node rsqrt(Operand x);       // 1 / sqrt(x)
PLEXAURA_API Node reciprocal(Operand x);  // 1 / x
PLEXAURA_API Node exp2(Operand x);        // 2^x
PLEXAURA_API Node expm1(Operand x);       // e^x - 1, without loss of digits near 0
PLEXAURA_API Node log2(Operand x);        // logarithm to base 2
PLEXAURA_API Node log10(Operand x);       // logarithm to base 10
PLEXAURA_API Node log1p(Operand x);       // log(1 + x), without loss of digits near 0

// sign() to trunc() have no gradient. Zeros keep their sign, and NaN stays NaN.
PLEXAURA_API Node sign(Operand x);   // 1, 0 or -1
PLEXAURA_API Node ceil(Operand x);   // the nearest whole number that is not below x
PLEXAURA_API Node floor(Operand x);  // the nearest whole number that is not above x
PLEXAURA_API Node round(Operand x);  // the nearest whole number; of two equally near ones the even one
PLEXAURA_API Node trunc(Operand x);  // the whole part

struct GeluOptions {
  // Computes x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which differs from the exact value by up to 5e-4.
  bool tanh = false;
};

// x P(X <= x) for a standard normal X: x / 2 (1 + erf(x / sqrt(2))) (Hendrycks and Gimpel, arXiv:1606.08415).
PLEXAURA_API Node gelu(Operand x, GeluOptions options = {});

// x where x > 0, else slope x. The gradient at 0 is the slope.
PLEXAURA_API Node leaky_relu(Operand x, double slope = 0.01);

// The nearest number from `low` to `high`. NaN remains NaN. `low` must not be above `high`; either may be
// infinite. The gradient passes where low <= x <= high.
PLEXAURA_API Node clip(Operand x, double low, double high);

// Converts x to another dtype. Floats to integers truncate; values that do not fit become the nearest value that does,
// and NaN becomes 0. Integers to smaller ones wrap around. Converted to bool, every value but zero is true. Between
// floating dtypes the gradient passes, and is cast back.
PLEXAURA_API Node cast(Operand x, DType dtype);

// Returns x; no gradient passes through it.
PLEXAURA_API Node stop_gradient(Operand x);

inline Node operator-(Operand x) { return neg(x); }

struct CastOptions {
  DType dtype = DType::float32;

  static void fields(auto& self, auto& visitor) { visitor("dtype", self.dtype); }
};

class PLEXAURA_API Cast final : public OpOf<Cast, CastOptions> {
 public:
  using OpOf::OpOf;
  std::string_view name() const override { return "cast"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  void compute(const HostCall& call) const;
  OpTraits traits() const override { return {.elementwise = true}; }
};

}  // namespace plexaura
