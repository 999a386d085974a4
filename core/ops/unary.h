#pragma once

#include "core/export.h"
#include "core/graph/op.h"

namespace plexaura {

// Elementwise functions of one value: any shape, floating types unless said otherwise; the result has the
// operand's type.

PLEXAURA_API Node neg(Operand x);       // -x
PLEXAURA_API Node abs(Operand x);       // |x|; its gradient at 0 is 0
PLEXAURA_API Node exp(Operand x);       // e^x
PLEXAURA_API Node log(Operand x);       // natural logarithm
PLEXAURA_API Node sqrt(Operand x);      // square root
PLEXAURA_API Node square(Operand x);    // x^2
PLEXAURA_API Node sigmoid(Operand x);   // 1 / (1 + e^-x), without overflow for any x
PLEXAURA_API Node tanh(Operand x);      // hyperbolic tangent
PLEXAURA_API Node relu(Operand x);      // max(x, 0); its gradient at 0 is 0
PLEXAURA_API Node softplus(Operand x);  // log(1 + e^x), without overflow for any x

// grad where y > 0, else 0: the gradient of relu from its *output*, so that the input need not be kept. Same
// type and shape.
PLEXAURA_API Node relu_grad(Operand grad_out, Operand y);

// The same values as another dtype. Floats to integers truncate; anything but zero is true. Floats pass
// gradients on, cast back.
PLEXAURA_API Node cast(Operand x, DType dtype);

// x itself, through which no gradient flows.
PLEXAURA_API Node stop_gradient(Operand x);

inline Node operator-(Operand x) { return neg(x); }

struct CastOptions {
  DType dtype = DType::float32;
  void describe(Description& to) const { to.add("dtype", dtype); }
};

class PLEXAURA_API Cast final : public OpWith<CastOptions> {
 public:
  using OpWith::OpWith;
  std::string_view name() const override { return "cast"; }
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  std::vector<Node> vjp(const VjpRequest& request) const override;
  OpTraits traits() const override { return {.elementwise = true}; }
};

}  // namespace plexaura
